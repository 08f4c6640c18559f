-- SPDX-License-Identifier: Apache-2.0
-- The id of the task as which runs report the state with pending writes (PROTOCOL.md, `task`): the greatest UUID.
-- Returns: the id.
-- Locks:   none.
create or replace function agent.pending_id() returns text
language sql immutable parallel safe
-- No SET clause: it would keep the body from being inlined.
as $function$
    select 'ffffffff-ffff-ffff-ffff-ffffffffffff'
$function$;

comment on function agent.pending_id() is 'The id of the task that reports the state with pending writes.';
