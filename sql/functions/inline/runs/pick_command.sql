-- SPDX-License-Identifier: Apache-2.0
-- The command of a run; null if none of its members has a value: the run then continues as without one, while the
-- libraries fail with such a command.
-- Returns: the exact text, or null.
-- Locks:   none.
create or replace function agent.pick_command(p_command json) returns json
language sql immutable parallel safe
-- No SET clause: it would keep the body from being inlined.
as $function$
    select case
               when json_typeof(p_command -> 'resume') <> 'null'
                    or (p_command -> 'update')::text !~ '^(null|\{\s*\}|\[\s*\])$'
                    or (p_command -> 'goto')::text !~ '^(null|false|""|\{\s*\}|\[\s*\])$'
               then p_command
           end
$function$;

comment on function agent.pick_command(json) is 'The command of a run; null if it says nothing.';
