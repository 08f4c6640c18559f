-- SPDX-License-Identifier: Apache-2.0
-- Answers blob.get (worker/README.md): blobs by their digests, in their order, long ones part by part.
-- p_args: {"digests": [...]}.
-- p_cursor: INDEX.PART.
-- Returns: ok with {"blobs": [{"digest", "value_type", "text" or "base64", "part", "parts"}, ...]}; blob_not_found for
--          a digest that the thread does not have; invalid_cursor.
-- Bound:   p_max_bytes, or one part of a blob.
-- Locks:   none.
create or replace function agent.read_blobs(
    p_deployment_id uuid,
    p_thread_id uuid,
    p_args json,
    p_cursor text,
    p_max_bytes integer,
    out code text,
    out body text,
    out cursor text
)
language plpgsql stable security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set enable_hashjoin = off set enable_mergejoin = off set plan_cache_mode = force_generic_plan
as $function$
declare
    v_digests uuid[] := array(select d.digest::uuid from json_array_elements_text(p_args -> 'digests') d (digest));
    v_first   integer := 0;
    v_part    integer := 0;
    v_bytes   bigint := 0;
    v_blob    record;
    v_parts   text[] := '{}';
begin
    if p_cursor is not null then
        if p_cursor !~ '^[0-9]{1,6}\.[0-9]{1,6}$'
            or split_part(p_cursor, '.', 1)::integer >= cardinality(v_digests)
        then
            code := 'invalid_cursor';
            return;
        end if;
        v_first := split_part(p_cursor, '.', 1);
        v_part := split_part(p_cursor, '.', 2);
    end if;
    for v_blob in
        select v_first + d.pos as pos, d.digest, b.type, b.parts, p.part, p.is_text, p.content
          from unnest(v_digests[v_first + 1 :]) with ordinality d (digest, pos)
          left join lateral (
                select x.type, x.parts, x.is_text, x.content
                  from agent.checkpoint_blobs x
                 where x.deployment_id = p_deployment_id
                   and x.thread_id = p_thread_id
                   and x.digest = d.digest
                   and x.part = 0
                   and x.stored_parts = x.parts
                 limit 1
               ) b on true
         cross join lateral (
                select 0 as part, b.is_text, b.content
                union all
                (
                    select x.part, x.is_text, x.content
                      from agent.checkpoint_blobs x
                     where b.parts > 1
                       and x.deployment_id = p_deployment_id
                       and x.thread_id = p_thread_id
                       and x.digest = d.digest
                       and x.part between 1 and b.parts - 1
                     order by x.deployment_id, x.thread_id, x.digest, x.part
                )
               ) p
         where d.pos > 1
            or b.parts is null
            or p.part >= v_part
    loop
        if v_blob.parts is null or v_part > 0 and v_parts = '{}' and v_blob.pos > v_first + 1 then
            code := case when v_blob.parts is null then 'blob_not_found' else 'invalid_cursor' end;
            return;
        end if;
        -- base64 is longer by a third.
        v_bytes := v_bytes + 128 + length(v_blob.content) * case when v_blob.is_text then 3 else 4 end / 3;
        if v_bytes > p_max_bytes and v_parts <> '{}' then
            cursor := (v_blob.pos - 1) || '.' || v_blob.part;
            exit;
        end if;
        v_parts := v_parts || (
            '{"digest":"' || v_blob.digest || '","value_type":' || to_json(v_blob.type)
            || case
                   when v_blob.is_text then ',"text":' || to_json(convert_from(v_blob.content, 'UTF8'))
                   else ',"base64":"' || replace(encode(v_blob.content, 'base64'), E'\n', '') || '"'
               end
            || ',"part":' || v_blob.part || ',"parts":' || v_blob.parts || '}');
    end loop;
    if v_parts = '{}' and v_part > 0 then
        code := 'invalid_cursor';
        return;
    end if;
    code := 'ok';
    body := '{"blobs":[' || array_to_string(v_parts, ',') || ']}';
end
$function$;

comment on function agent.read_blobs(uuid, uuid, json, text, integer) is 'Blobs by their digests.';
