-- SPDX-License-Identifier: Apache-2.0
-- Finds items of the store: those below a prefix of labels whose value has the members of the filter, the last
-- updated first.
-- p_request: {"filter", "limit", "offset"}, of which limit and offset may be missing.
-- p_skip:  how many to pass over in addition, and of the limit.
-- Returns: namespaces and keys; cost: the work done, expressed as bytes of items that take as long to read.
--          Both null: there are more than 50,000 items below the prefix, or with a filter more than 64 MB of values.
-- Locks:   none.
create or replace function agent.find_items(
    p_deployment_id uuid,
    p_prefix text[],
    p_request json,
    p_skip integer,
    out items json,
    out cost integer
)
language plpgsql stable security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $function$
declare
    c_items  constant integer := 50000;
    c_bytes  constant bigint := 64000000;
    v_now    timestamptz := agent.now();
    v_limit  bigint := coalesce((p_request ->> 'limit')::bigint, 10) - p_skip;
    v_offset bigint := coalesce((p_request ->> 'offset')::bigint, 0) + p_skip;
    v_filter jsonb := nullif((p_request -> 'filter')::jsonb, 'null');
    v_end    text[] := agent.namespace_end(p_prefix);
    v_where  record;
    v_count  bigint;
    v_bytes  bigint;
begin
    if (v_limit between 0 and 1000 and v_offset between 0 and 2147483647) is not true
        or jsonb_typeof(v_filter) <> 'object'
    then
        raise exception using errcode = 'invalid_parameter_value', message = 'a search has wrong arguments';
    end if;
    if v_filter = '{}' then
        v_filter := null;
    end if;
    select count(*), sum(i.value_bytes) into v_count, v_bytes
      from (
            select x.value_bytes
              from agent.store_items x
             where x.deployment_id = p_deployment_id
               and x.namespace >= p_prefix
               and x.namespace < v_end
             order by x.namespace, x.key
             limit c_items + 1
           ) i;
    if v_count > c_items or v_filter is not null and v_bytes > c_bytes then
        return;
    end if;
    cost := v_count * 20 + case when v_filter is null then 0 else coalesce(v_bytes, 0) / 64 end;
    select f.* into v_where from agent.split_filter(coalesce(v_filter, '{}')) f;
    select coalesce(json_agg(json_build_array(i.namespace, i.key)), '[]') into items
      from (
            select x.namespace, x.key
              from agent.store_items x
             where x.deployment_id = p_deployment_id
               and x.namespace >= p_prefix
               and x.namespace < v_end
               and agent.is_live_item(x.expires_at, v_now)
               and (v_where.equal is null or x.value @> v_where.equal)
               and (v_where.path is null or x.value @@ v_where.path)
               and (v_where.exact is null or not exists (
                    select from jsonb_each(v_where.exact) e where x.value -> e.key is distinct from e.value))
               and (v_where.differ is null or not exists (
                    select from jsonb_each(v_where.differ) e where x.value -> e.key = e.value))
             order by x.updated_at desc, x.namespace, x.key
             limit v_limit offset v_offset
           ) i;
end
$function$;

comment on function agent.find_items(uuid, text[], json, integer) is 'Finds items of the store.';
