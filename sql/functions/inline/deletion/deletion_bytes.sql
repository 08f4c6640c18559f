-- SPDX-License-Identifier: Apache-2.0
-- The most that one transaction deletes: events, runs, checkpoints and elements, in bytes as agent.delete_events and
-- agent.delete_items count them, about 60 ms of work. Other transactions delete the rest.
-- Returns: a number of bytes.
-- Locks:   none.
create or replace function agent.deletion_bytes() returns bigint
language sql immutable parallel safe
-- No SET clause: it would keep the body from being inlined.
as $function$
    select 4000000::bigint
$function$;

comment on function agent.deletion_bytes() is
    'Bytes that one transaction deletes at most.';
