-- SPDX-License-Identifier: Apache-2.0
-- An item of the store as the API and the runner protocol show it. p_found: as the result of a search, which has a
-- score; without an index there is none.
-- Returns: the item as JSON text.
-- Locks:   none.
create or replace function agent.render_item(p_item agent.store_items, p_found boolean) returns text
language sql stable parallel safe
-- No SET clause: it would keep the body from being inlined.
as $function$
    select '{"namespace":' || array_to_json((p_item).namespace)
           || ',"key":' || to_json((p_item).key)
           || ',"value":' || (p_item).value
           || ',"created_at":"' || agent.render_time((p_item).created_at)
           || '","updated_at":"' || agent.render_time((p_item).updated_at)
           || case when p_found then '","score":null}' else '"}' end
$function$;

comment on function agent.render_item(agent.store_items, boolean) is 'An item of the store as the API shows it.';
