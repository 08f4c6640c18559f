-- SPDX-License-Identifier: Apache-2.0
-- The time that a function has taken in the database so far: without the commit, without the network, and without
-- p_locking, the time that it took to get its locks. p_started: clock_timestamp() when it began. Its transaction may
-- have begun long before: a pipeline begins one with the statement before, while megabytes of parameters still arrive.
-- Returns: microseconds.
-- Locks:   none.
create or replace function agent.elapsed_usec(p_started timestamptz, p_locking interval) returns bigint
language sql volatile parallel safe
-- No SET clause: it would keep the body from being inlined.
as $function$
    select (extract(epoch from pg_catalog.clock_timestamp() - p_started - p_locking) * 1000000)::bigint
$function$;

comment on function agent.elapsed_usec(timestamptz, interval) is
    'Microseconds since that time, without the time of its locks.';
