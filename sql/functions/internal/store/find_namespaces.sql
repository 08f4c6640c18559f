-- SPDX-License-Identifier: Apache-2.0
-- Finds namespaces of the store that have items: those that begin with the labels of prefix and end with those of
-- suffix, in which * is any label, cut to max_depth labels, each once, in ascending order.
-- p_request: {"prefix", "suffix", "max_depth", "limit", "offset"}, all of which may be missing.
-- Returns: an array of arrays as text; cost: as agent.find_items.
--          Both null: more than 20,000 namespaces were examined.
-- Locks:   none.
create or replace function agent.find_namespaces(
    p_deployment_id uuid,
    p_request json,
    out namespaces text,
    out cost integer
)
language plpgsql stable security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off
set plan_cache_mode = force_generic_plan
as $function$
declare
    c_namespaces constant integer := 20000;
    v_now        timestamptz := agent.now();
    v_prefix     text[] := agent.read_namespace(p_request -> 'prefix', 0);
    v_suffix     text[] := agent.read_namespace(p_request -> 'suffix', 0);
    v_depth      integer := coalesce((p_request ->> 'max_depth')::integer, 32);
    v_limit      bigint := coalesce((p_request ->> 'limit')::bigint, 100);
    v_offset     bigint := coalesce((p_request ->> 'offset')::bigint, 0);
    -- The labels of the prefix before the first *: where to search.
    v_fixed      text[] := v_prefix[:coalesce(array_position(v_prefix, '*'), cardinality(v_prefix) + 1) - 1];
    v_end        text[] := agent.namespace_end(v_fixed);
    v_from       text[] := v_fixed;
    v_found      text[];
    v_texts      text[] := '{}';
    v_count      integer := 0;
    v_fits       boolean;
    v_after      integer;
begin
    if (v_depth >= 1 and v_limit between 0 and 1000 and v_offset between 0 and 2147483647) is not true then
        raise exception using errcode = 'invalid_parameter_value', message = 'a list has wrong arguments';
    end if;
    while cardinality(v_texts) < v_limit
    loop
        select x.namespace into v_found
          from agent.store_items x
         where x.deployment_id = p_deployment_id
           and x.namespace >= v_from
           and x.namespace < v_end
           and agent.is_live_item(x.expires_at, v_now)
         order by x.namespace
         limit 1;
        exit when not found;
        v_count := v_count + 1;
        if v_count > c_namespaces then
            namespaces := null;
            return;
        end if;
        -- Loops: a function called for each namespace would take most of the time.
        v_after := cardinality(v_found) - cardinality(v_suffix);
        v_fits := cardinality(v_found) >= cardinality(v_prefix) and v_after >= 0;
        for i in cardinality(v_fixed) + 1 .. cardinality(v_prefix)
        loop
            v_fits := v_fits and v_prefix[i] in ('*', v_found[i]);
        end loop;
        for i in 1 .. cardinality(v_suffix)
        loop
            v_fits := v_fits and v_suffix[i] in ('*', v_found[v_after + i]);
        end loop;
        if v_fits then
            v_found := v_found[:v_depth];
            if v_offset > 0 then
                v_offset := v_offset - 1;
            else
                v_texts := v_texts || array_to_json(v_found)::text;
            end if;
            if cardinality(v_found) = v_depth then
                v_from := agent.namespace_end(v_found);
                continue;
            end if;
        end if;
        -- The next one: no label is empty.
        v_from := v_found || ''::text;
    end loop;
    namespaces := '[' || array_to_string(v_texts, ',') || ']';
    cost := v_count * 50;
end
$function$;

comment on function agent.find_namespaces(uuid, json) is 'Finds namespaces of the store that have items.';
