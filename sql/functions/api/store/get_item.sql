-- SPDX-License-Identifier: Apache-2.0
-- GET /store/items. p_namespace: labels joined by periods. p_refresh: whether the time to live begins again.
-- Returns: ok with the item, or null.
-- Locks:   the item, when its time to live begins again.
create or replace function agent.get_item(
    p_deployment_id uuid,
    p_namespace text,
    p_key text,
    p_refresh boolean,
    out code text,
    out body text
)
language plpgsql volatile security invoker
set search_path = ''
as $function$
declare
    v_labels  text[] := string_to_array(p_namespace, '.');
    v_expires boolean;
begin
    select r.body, r.expires into body, v_expires
      from agent.read_item(p_deployment_id, v_labels, p_key, false) r;
    if v_expires and p_refresh then
        perform agent.refresh_items(p_deployment_id, json_build_array(json_build_array(v_labels, p_key)));
    end if;
    code := 'ok';
    body := coalesce(body, 'null');
end
$function$;

comment on function agent.get_item(uuid, text, text, boolean) is 'GET /store/items.';
