-- SPDX-License-Identifier: Apache-2.0
-- DELETE /store/items. p_request: the body.
-- Returns: ok, also when there is no such item.
-- Locks:   the item.
create or replace function agent.delete_item(p_deployment_id uuid, p_request json, out code text, out body text)
language plpgsql volatile security invoker
set search_path = ''
as $function$
begin
    perform agent.put_items(
        p_deployment_id,
        json_build_array(json_build_object('namespace', p_request -> 'namespace', 'key', p_request -> 'key')));
    code := 'ok';
end
$function$;

comment on function agent.delete_item(uuid, json) is 'DELETE /store/items.';
