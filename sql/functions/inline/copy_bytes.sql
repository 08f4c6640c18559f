-- SPDX-License-Identifier: Apache-2.0
-- The most that one transaction copies of a thread: checkpoints and elements, in bytes as agent.copy_checkpoints and
-- agent.copy_items count them, about 60 ms of work.
-- Returns: a number of bytes.
-- Locks:   none.
create or replace function agent.copy_bytes() returns bigint
language sql immutable parallel safe
-- No SET clause: it would keep the body from being inlined.
as $function$
    select 4000000::bigint
$function$;

comment on function agent.copy_bytes() is 'Bytes that one transaction copies at most.';
