-- SPDX-License-Identifier: Apache-2.0
-- PUT /store/items. p_request: the body.
-- Returns: ok.
-- Locks:   the item.
create or replace function agent.put_item(p_deployment_id uuid, p_request json, out code text, out body text)
language plpgsql volatile security invoker
set search_path = ''
as $function$
begin
    perform agent.put_items(p_deployment_id, json_build_array(p_request));
    code := 'ok';
end
$function$;

comment on function agent.put_item(uuid, json) is 'PUT /store/items.';
