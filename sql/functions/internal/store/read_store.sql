-- SPDX-License-Identifier: Apache-2.0
-- Executes a read of agent.use_store. p_op: its object; p_skip: how many items of a search earlier parts have.
-- Returns: the result; refresh: [namespace, key] of the items whose time to live is to be restarted, as texts; cost:
--          the bytes of the result and the work for it, as bytes; taken: for a search that does not fit, the number of
--          its items in this and earlier parts, null when it is complete. body null: it would examine too much.
-- Bound:   p_max_bytes and one item or list of namespaces.
-- Locks:   none.
create or replace function agent.read_store(
    p_deployment_id uuid,
    p_name text,
    p_op json,
    p_skip integer,
    p_max_bytes integer,
    out body text,
    out refresh text[],
    out cost integer,
    out taken integer
)
language plpgsql stable security invoker
set search_path = '' set jit = off
as $function$
declare
    v_does_refresh boolean := p_op ->> 'refresh_ttl' is distinct from 'false';
    v_items        json;
    v_item         record;
    v_expires      boolean;
    v_text         text;
    v_texts        text[] := '{}';
    v_count        integer := p_skip;
    v_bytes        integer := 0;
begin
    refresh := '{}';
    if p_name = 'list' then
        select '{"namespaces":' || f.namespaces || '}', f.cost + octet_length(f.namespaces) into body, cost
          from agent.find_namespaces(p_deployment_id, p_op) f;
        return;
    elsif p_name = 'get' then
        v_items := json_build_array(json_build_array(agent.read_namespace(p_op -> 'namespace', 1), p_op ->> 'key'));
        cost := 100;
    elsif p_name = 'search' then
        select f.items, f.cost + 100 into v_items, cost
          from agent.find_items(
                   p_deployment_id, agent.read_namespace(p_op -> 'namespace_prefix', 0), p_op, p_skip) f;
        if v_items is null then
            return;
        end if;
    else
        raise exception using errcode = 'invalid_parameter_value', message = 'an operation is not one of the store';
    end if;

    for v_item in
        select x.item, array(select json_array_elements_text(x.item -> 0)) as namespace, x.item ->> 1 as key
          from json_array_elements(v_items) with ordinality x (item, pos)
         order by x.pos
    loop
        if v_bytes >= p_max_bytes then
            taken := v_count;
            exit;
        end if;
        select r.body, r.expires into v_text, v_expires
          from agent.read_item(p_deployment_id, v_item.namespace, v_item.key, p_name = 'search') r;
        v_count := v_count + 1;
        continue when v_text is null;
        v_texts := v_texts || v_text;
        v_bytes := v_bytes + octet_length(v_text);
        if v_expires and v_does_refresh then
            refresh := refresh || v_item.item::text;
        end if;
    end loop;
    cost := cost + v_bytes;
    body := case p_name
        when 'get' then coalesce(v_texts[1], 'null')
        else '{"items":[' || array_to_string(v_texts, ',')
             || case when taken is null then ']}' else '],"more":true}' end
    end;
end
$function$;

comment on function agent.read_store(uuid, text, json, integer, integer) is
    'Executes a read of a request to the store.';
