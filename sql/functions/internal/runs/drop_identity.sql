-- SPDX-License-Identifier: Apache-2.0
-- The members of a client's configurable without those in which graphs find the authenticated user: this server
-- authenticates nobody, and no client may pass for a user.
-- Returns: the object, {} for null.
-- Locks:   none.
create or replace function agent.drop_identity(p_configurable jsonb) returns jsonb
language plpgsql immutable parallel safe security invoker
set search_path = ''
as $function$
begin
    return coalesce(nullif(p_configurable, 'null'), '{}') - array(
        select k.name
          from jsonb_object_keys(nullif(p_configurable, 'null')) k (name)
         where starts_with(k.name, 'langgraph_auth_'));
end
$function$;

comment on function agent.drop_identity(jsonb) is 'A configurable without the members of an authenticated user.';
