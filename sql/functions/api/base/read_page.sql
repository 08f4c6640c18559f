-- SPDX-License-Identifier: Apache-2.0
-- The next records of a large list, for a response that is sent in parts.
-- p_kind:    runs, assistants, versions, threads, states or items; run: one run, which must exist.
-- p_parent_id: the thread of runs and states, the assistant of versions, else null.
-- p_keys:    of the whole list, in its order: as agent.list_runs, agent.search_assistants, agent.search_threads,
--            agent.list_assistant_versions, agent.get_history or agent.search_items returned them with p_lists_keys.
-- p_select:  null = whole records, else only these members; p_request: the body of a request, which may have them, and
--            the namespace of states.
-- p_cursor:  INDEX.COUNT, that of the previous part, at first 1.0: the index of the next key, and the number of records
--            returned so far. INDEX.COUNT.VALUES: the previous part ended within a record; VALUES is the cursor of
--            agent.read_values for its values.
-- Returns: ok with records as they are now, joined by commas, with a comma before them unless they are the first; those
--          that were deleted are missing; cursor: of the next part, null after the last one; run_not_found.
--          checkpoint_not_found: the values of a record that was begun were deleted.
-- Bound:   p_max_bytes plus one record. Values of more than p_max_bytes are parts of their own, bounded as those of
--          agent.read_values. Held by `v_bytes < p_max_bytes`.
-- Locks:   none.
create or replace function agent.read_page(
    p_deployment_id uuid,
    p_kind text,
    p_parent_id uuid,
    p_keys text[],
    p_select text[],
    p_request json,
    p_cursor text,
    p_max_bytes integer,
    out code text,
    out body text,
    out cursor text
)
language plpgsql stable security invoker
set search_path = '' set jit = off set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $function$
declare
    v_index   integer := split_part(p_cursor, '.', 1);
    v_count   integer := split_part(p_cursor, '.', 2);
    v_values  text := substring(p_cursor from '^[^.]*[.][^.]*[.](.*)$');
    v_is_next constant boolean := v_count > 0 and v_values is null;
    v_select  constant text[] := coalesce(p_select, agent.read_words(p_request -> 'select'));
    v_record  text;
    v_records text[] := '{}';
    v_length  bigint;
    v_bytes   bigint := 0;
    v_is_bare boolean;
begin
    if v_values is not null then
        select r.code, r.body, r.cursor, r.is_bare into code, body, v_values, v_is_bare
          from agent.read_values(
                   p_deployment_id, coalesce(p_parent_id, p_keys[v_index]::uuid), v_values, p_max_bytes) r;
        if v_values is null then
            -- The members after the mark: the values are the last of the record.
            body := body || case when v_is_bare then '}' else '}}' end;
            v_index := v_index + 1;
        end if;
        if v_values is not null or v_index <= cardinality(p_keys) then
            cursor := concat_ws('.', v_index, v_count, v_values);
        end if;
        return;
    end if;
    while v_index <= cardinality(p_keys) and v_bytes < p_max_bytes and v_values is null
    loop
        select c.body, c.bytes, c.cursor into v_record, v_length, v_values
          from agent.compose_record(
                   p_deployment_id, p_kind, p_parent_id, p_keys[v_index], v_select,
                   p_request #>> '{checkpoint,checkpoint_ns}', p_max_bytes) c;
        if v_record is not null then
            v_bytes := v_bytes + v_length;
            v_records := array_append(v_records, v_record);
            v_count := v_count + 1;
        elsif p_kind = 'run' then
            code := 'run_not_found';
            return;
        end if;
        v_index := v_index + case when v_values is null then 1 else 0 end;
    end loop;
    code := 'ok';
    body := case when v_is_next and v_bytes > 0 then ',' else '' end || array_to_string(v_records, ',');
    if v_index <= cardinality(p_keys) then
        cursor := concat_ws('.', v_index, v_count, v_values);
    end if;
end
$function$;

comment on function agent.read_page(uuid, text, uuid, text[], text[], json, text, integer) is
    'The next records of a large list.';
