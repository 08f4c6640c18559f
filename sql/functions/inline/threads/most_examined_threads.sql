-- SPDX-License-Identifier: Apache-2.0
-- The most threads that a search or a count examines or sorts for a request that does not wait for its turn.
-- Returns: a number of threads.
-- Locks:   none.
create or replace function agent.most_examined_threads() returns integer
language sql immutable parallel safe
-- No SET clause: it would keep the body from being inlined.
as $function$
    select 10000
$function$;

comment on function agent.most_examined_threads() is
    'The most threads that a search examines without waiting for its turn.';
