-- SPDX-License-Identifier: Apache-2.0
-- The next records of a large list, for a response that is sent in parts.
-- p_kind:    runs, assistants or versions; run: one run, which must exist.
-- p_parent_id: the thread of runs, the assistant of versions, else null.
-- p_keys:    of the whole list, in its order: as agent.list_runs, agent.search_assistants or
--            agent.list_assistant_versions returned them with p_lists_keys.
-- p_select:  null = whole records, else only these members; p_request: the body of a search, which may have them.
-- p_cursor:  INDEX.COUNT, as it came with the part before, at first 1.0: the next of the keys, and how many records
--            were returned.
-- Returns: ok with records as they are now, joined by commas, with a comma before them unless they are the first; those
--          that were deleted are missing; cursor: of the next part, null after the last one; run_not_found.
-- Bound:   p_max_bytes and one record, at least one. Held by `v_bytes < p_max_bytes`.
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
    v_is_next constant boolean := v_count > 0;
    v_select  constant text[] := coalesce(p_select, agent.read_words(p_request -> 'select'));
    v_record  text;
    v_records text[] := '{}';
    v_bytes   bigint := 0;
begin
    while v_index <= cardinality(p_keys) and v_bytes < p_max_bytes
    loop
        case p_kind
            when 'assistants' then
                select agent.render_assistant(a) into v_record
                  from agent.assistants a
                 where a.deployment_id = p_deployment_id
                   and a.assistant_id = p_keys[v_index]::uuid;
            when 'versions' then
                select agent.render_assistant_version(v) into v_record
                  from agent.assistant_versions v
                 where v.deployment_id = p_deployment_id
                   and v.assistant_id = p_parent_id
                   and v.version = p_keys[v_index]::integer;
            else
                select agent.render_run(r) into v_record
                  from agent.find_run(p_deployment_id, p_parent_id, p_keys[v_index]::uuid) r;
        end case;
        v_index := v_index + 1;
        if v_record is not null then
            v_bytes := v_bytes + octet_length(v_record);
            if v_select <> '{}' then
                v_record := agent.pick_members(v_record::json, v_select);
            end if;
            v_records := array_append(v_records, v_record);
            v_count := v_count + 1;
        elsif p_kind = 'run' then
            code := 'run_not_found';
            return;
        end if;
    end loop;
    code := 'ok';
    body := case when v_is_next and v_bytes > 0 then ',' else '' end || array_to_string(v_records, ',');
    if v_index <= cardinality(p_keys) then
        cursor := concat_ws('.', v_index, v_count);
    end if;
end
$function$;

comment on function agent.read_page(uuid, text, uuid, text[], text[], json, text, integer) is
    'The next records of a large list.';
