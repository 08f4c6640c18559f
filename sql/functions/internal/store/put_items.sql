-- SPDX-License-Identifier: Apache-2.0
-- Puts items into the store, or deletes them: those whose value is null. Of several puts of one item the last one
-- counts.
-- p_puts: [{"namespace", "key", "value", "ttl"}, ...], ttl in minutes. A value has at most 1 MiB, and 4 MiB as jsonb,
-- which writes numbers without exponents. p_ttl: of those without a ttl; null: they do not expire.
-- Returns: nothing; raises invalid_parameter_value for one that is not valid.
-- Locks:   the items, in the order of namespace and key.
create or replace function agent.put_items(p_deployment_id uuid, p_puts json, p_ttl interval default null) returns void
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $function$
declare
    c_key_bytes   constant integer := 1024;
    c_value_bytes constant integer := 1048576;
    -- Ten years.
    c_minutes     constant integer := 5256000;
    v_now         timestamptz := agent.now();
    v_put         record;
    v_value       jsonb;
    v_bytes       integer;
    v_ttl         interval;
begin
    for v_put in
        select distinct on (p.namespace, p.key) p.*
          from (
                select agent.read_namespace(x.put -> 'namespace', 1) collate "C" as namespace,
                       x.put ->> 'key' collate "C" as key,
                       nullif(json_typeof(x.put -> 'key'), 'string') as key_type,
                       nullif(json_typeof(x.put -> 'value'), 'null') as type,
                       x.put ->> 'value' as value,
                       (x.put ->> 'ttl')::double precision as ttl,
                       x.pos
                  from json_array_elements(p_puts) with ordinality x (put, pos)
               ) p
         order by p.namespace, p.key, p.pos desc
    loop
        if (octet_length(v_put.key) between 1 and c_key_bytes and v_put.key_type is null
            and (v_put.type is null or v_put.type = 'object' and octet_length(v_put.value) <= c_value_bytes)
            and (v_put.ttl is null or v_put.ttl > 0 and v_put.ttl <= c_minutes)) is not true
        then
            raise exception using errcode = 'invalid_parameter_value', message = 'a put has wrong arguments';
        end if;
        if v_put.type is null then
            delete from agent.store_items i
             where i.deployment_id = p_deployment_id
               and i.namespace = v_put.namespace
               and i.key = v_put.key;
            continue;
        end if;
        v_value := v_put.value;
        v_bytes := octet_length(v_value::text);
        if v_bytes > 4 * c_value_bytes then
            raise exception using errcode = 'invalid_parameter_value', message = 'a value is too long';
        end if;
        v_ttl := coalesce(v_put.ttl * interval '1 minute', p_ttl);
        insert into agent.store_items as i
            (deployment_id, namespace, key, value, value_bytes, ttl, expires_at, created_at, updated_at)
        values (p_deployment_id, v_put.namespace, v_put.key, v_value, v_bytes, v_ttl, v_now + v_ttl, v_now,
                v_now)
            on conflict (deployment_id, namespace, key) do update
           set value = excluded.value,
               value_bytes = excluded.value_bytes,
               ttl = excluded.ttl,
               expires_at = excluded.expires_at,
               -- An expired item was no longer there.
               created_at = case when i.expires_at <= v_now then v_now else i.created_at end,
               updated_at = greatest(v_now, i.updated_at + interval '1 microsecond');
    end loop;
end
$function$;

comment on function agent.put_items(uuid, json, interval) is 'Puts items into the store, or deletes them.';
