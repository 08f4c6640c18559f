-- SPDX-License-Identifier: Apache-2.0
-- agent.remove_identity, called only where there is something to remove.
-- Returns: the object, {} for null.
-- Locks:   none.
create or replace function agent.drop_identity(p_configurable jsonb) returns jsonb
language sql immutable parallel safe
-- No SET clause: it would keep the body from being inlined.
as $function$
    select case
               when coalesce(jsonb_typeof(p_configurable), 'null') = 'null' then '{}'
               when strpos(p_configurable::text, 'langgraph_auth_') = 0 then p_configurable
               else agent.remove_identity(p_configurable)
           end
$function$;

comment on function agent.drop_identity(jsonb) is 'A configurable without the members of an authenticated user.';
