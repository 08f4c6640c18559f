-- SPDX-License-Identifier: Apache-2.0
-- The time that the transaction has taken in the database so far: without its commit, and without the network.
-- Returns: microseconds since its first statement arrived.
-- Locks:   none.
create or replace function agent.elapsed_usec() returns bigint
language sql volatile parallel safe
-- No SET clause: it would keep the body from being inlined.
as $function$
    select (extract(epoch from pg_catalog.clock_timestamp() - pg_catalog.transaction_timestamp()) * 1000000)::bigint
$function$;

comment on function agent.elapsed_usec() is 'Microseconds since the transaction began.';
