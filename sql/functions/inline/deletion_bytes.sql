-- SPDX-License-Identifier: Apache-2.0
-- The events, in bytes as agent.delete_events counts them, that the deletion of a run or thread deletes itself:
-- about a quarter of a second of work. agent.sweep_events deletes the others.
-- Returns: a number of bytes.
-- Locks:   none.
create or replace function agent.deletion_bytes() returns bigint
language sql immutable parallel safe
-- No SET clause: it would keep the body from being inlined.
as $function$
    select 16000000::bigint
$function$;

comment on function agent.deletion_bytes() is
    'Bytes of events that the deletion of a run or thread deletes itself.';
