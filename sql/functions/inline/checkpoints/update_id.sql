-- SPDX-License-Identifier: Apache-2.0
-- The id of the task as which runs report the update of a command (PROTOCOL.md, `task`): the nil UUID, under which the
-- library for Python keeps its writes.
-- Returns: the id.
-- Locks:   none.
create or replace function agent.update_id() returns text
language sql immutable parallel safe
-- No SET clause: it would keep the body from being inlined.
as $function$
    select '00000000-0000-0000-0000-000000000000'
$function$;

comment on function agent.update_id() is 'The id of the task that reports the update of a command.';
