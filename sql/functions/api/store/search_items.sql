-- SPDX-License-Identifier: Apache-2.0
-- POST /store/items/search. p_request: the body.
-- Returns: ok with the items, the last updated first; next: the offset of the next page, null after the last one.
--          body null: the items have more than p_max_bytes (null = no limit); the rest was not read.
--          p_lists_keys: [namespace, key] of each instead, an array for agent.read_page.
--          too_many_items: see agent.find_items.
-- Bound:   16 MB of items, but at least one item.
--          Held by `agent.is_full_page(v_count, null, v_bytes)` and
--          `p_bytes > 16777216` in sql/functions/inline/base/is_full_page.sql.
-- Locks:   items whose time to live begins again.
create or replace function agent.search_items(
    p_deployment_id uuid,
    p_request json,
    p_max_bytes bigint,
    p_lists_keys boolean default false,
    out code text,
    out body text,
    out next text
)
language plpgsql volatile security invoker
set search_path = ''
as $function$
declare
    v_items   json;
    v_item    json;
    v_read    record;
    v_texts   text[] := '{}';
    v_refresh text[] := '{}';
    v_bytes   bigint := 0;
    v_count   integer := 0;
begin
    select f.items into v_items
      from agent.find_items(
               p_deployment_id, agent.read_namespace(p_request -> 'namespace_prefix', 0), p_request, 0) f;
    if v_items is null then
        code := 'too_many_items';
        return;
    end if;
    code := 'ok';
    for v_item in
        select x.item from json_array_elements(v_items) with ordinality x (item, pos) order by x.pos
    loop
        select r.body, r.bytes, r.expires into v_read
          from agent.read_item(
                   p_deployment_id, array(select json_array_elements_text(v_item -> 0)), v_item ->> 1, true,
                   case when p_lists_keys then 0 else p_max_bytes - v_bytes end) r;
        -- It was deleted in the meantime.
        continue when v_read.bytes is null;
        v_bytes := v_bytes + v_read.bytes;
        if v_bytes > p_max_bytes then
            return;
        end if;
        if agent.is_full_page(v_count, null, v_bytes) then
            next := coalesce((p_request ->> 'offset')::integer, 0) + v_count;
            exit;
        end if;
        if v_read.expires then
            v_refresh := v_refresh || v_item::text;
        end if;
        v_texts := array_append(v_texts, case when p_lists_keys then v_item::text else v_read.body end);
        v_count := v_count + 1;
    end loop;
    if cardinality(v_refresh) > 0 and p_request ->> 'refresh_ttl' is distinct from 'false' then
        perform agent.refresh_items(p_deployment_id, ('[' || array_to_string(v_refresh, ',') || ']')::json);
    end if;
    body := case
        when p_lists_keys then v_texts::text
        else '{"items":[' || array_to_string(v_texts, ',') || ']}'
    end;
end
$function$;

comment on function agent.search_items(uuid, json, bigint, boolean) is 'POST /store/items/search.';
