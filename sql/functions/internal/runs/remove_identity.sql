-- SPDX-License-Identifier: Apache-2.0
-- The members of a client's configurable without those in which graphs find the authenticated user: no client may
-- pass for one.
-- Returns: the object.
-- Locks:   none.
create or replace function agent.remove_identity(p_configurable jsonb) returns jsonb
language plpgsql immutable parallel safe security invoker
set search_path = ''
as $function$
begin
    return p_configurable - array(
        select k.name
          from jsonb_object_keys(p_configurable) k (name)
         where starts_with(k.name, 'langgraph_auth_'));
end
$function$;

comment on function agent.remove_identity(jsonb) is 'A configurable without the members of an authenticated user.';
