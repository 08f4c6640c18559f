-- SPDX-License-Identifier: Apache-2.0
-- The time that the transaction has taken in the database so far: without its commit, without the network, and
-- without p_locking, the time that it took to get its locks.
-- Returns: microseconds since its first statement arrived.
-- Locks:   none.
create or replace function agent.elapsed_usec(p_locking interval) returns bigint
language sql volatile parallel safe
-- No SET clause: it would keep the body from being inlined.
as $function$
    select (extract(epoch from pg_catalog.clock_timestamp() - pg_catalog.transaction_timestamp() - p_locking)
            * 1000000)::bigint
$function$;

comment on function agent.elapsed_usec(interval) is
    'Microseconds since the transaction began, without the time of its locks.';
