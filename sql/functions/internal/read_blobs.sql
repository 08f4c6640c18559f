-- SPDX-License-Identifier: Apache-2.0
-- Answers blob.get of the runner protocol: blobs by their digests, in their order, long ones part by part.
-- p_args: {"digests": [...]}.
-- p_cursor null: the first part of the answer; else the cursor that came with the one before, INDEX.PART.
-- Returns: ok with {"blobs": [{"digest", "value_type", "text" or "base64", "part", "parts"}, ...]}; cursor: of the next
--          part of the answer, null after the last one; blob_not_found for a digest that the thread does not have;
--          invalid_cursor. Raises an error of class 22 for arguments of a wrong type.
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
    v_index   integer := 1;
    v_part    integer := 0;
    v_bytes   bigint := 0;
    v_blob    record;
    v_parts   text[] := '{}';
begin
    if p_cursor is not null then
        if p_cursor !~ '^[0-9]{1,6}\.[0-9]{1,6}$' or split_part(p_cursor, '.', 1)::integer >= cardinality(v_digests) then
            code := 'invalid_cursor';
            return;
        end if;
        v_index := 1 + split_part(p_cursor, '.', 1)::integer;
        v_part := split_part(p_cursor, '.', 2);
    end if;
    while v_index <= cardinality(v_digests)
    loop
        select b.type, b.parts, p.is_text, p.content into v_blob
          from agent.checkpoint_blobs b
          join agent.checkpoint_blobs p
            on p.deployment_id = b.deployment_id
           and p.thread_id = b.thread_id
           and p.digest = b.digest
           and p.part = v_part
         where b.deployment_id = p_deployment_id
           and b.thread_id = p_thread_id
           and b.digest = v_digests[v_index]
           and b.part = 0
           and b.stored_parts = b.parts
           and b.parts > v_part;
        if not found then
            code := case when v_part = 0 then 'blob_not_found' else 'invalid_cursor' end;
            body := null;
            return;
        end if;
        -- base64 is longer by a third.
        v_bytes := v_bytes + 128 + length(v_blob.content) + case when v_blob.is_text then 0 else length(v_blob.content) / 3 end;
        if v_bytes > p_max_bytes and v_parts <> '{}' then
            cursor := (v_index - 1) || '.' || v_part;
            exit;
        end if;
        v_parts := v_parts || case
            when v_blob.is_text then json_build_object(
                'digest', v_digests[v_index], 'value_type', v_blob.type, 'text', convert_from(v_blob.content, 'UTF8'),
                'part', v_part, 'parts', v_blob.parts)::text
            else json_build_object(
                'digest', v_digests[v_index], 'value_type', v_blob.type,
                'base64', replace(encode(v_blob.content, 'base64'), E'\n', ''), 'part', v_part, 'parts', v_blob.parts)::text
        end;
        v_part := v_part + 1;
        if v_part = v_blob.parts then
            v_part := 0;
            v_index := v_index + 1;
        end if;
    end loop;
    code := 'ok';
    body := '{"blobs":[' || array_to_string(v_parts, ',') || ']}';
end
$function$;

comment on function agent.read_blobs(uuid, uuid, json, text, integer) is 'Blobs by their digests.';
