-- SPDX-License-Identifier: Apache-2.0
-- GET /threads/{thread_id}/runs. p_status null = any; p_select null = whole records, else only these members.
-- Returns: ok with an array of run records, newest first, [] for none; next: the offset of the next page,
--          null after the last; thread_not_found. body null: the records have more than p_max_bytes (null =
--          no limit); the rest was not read. p_lists_keys: their ids instead, an array for agent.read_page.
-- Bound:   16 MB of whole records, of which p_select takes a part, but at least one record. Records are read
--          one by one: values beyond the bound are not fetched from their storage, and for p_lists_keys only
--          compressed ones.
--          Held by `agent.is_full_page(v_count, p_limit, v_bytes)` and
--          `p_bytes > 16777216` in sql/functions/inline/base/is_full_page.sql.
-- Locks:   none.
create or replace function agent.list_runs(
    p_deployment_id uuid,
    p_thread_id uuid,
    p_limit integer,
    p_offset integer,
    p_status text,
    p_select text[],
    p_max_bytes bigint default null,
    p_lists_keys boolean default false,
    out code text,
    out body text,
    out next text
)
language plpgsql stable security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set enable_sort = off set plan_cache_mode = force_generic_plan
as $function$
declare
    v_run     agent.runs;
    v_record  text;
    v_records text[] := '{}';
    v_bytes   bigint := 0;
    v_count   integer := 0;
begin
    perform from agent.threads t
      where t.deployment_id = p_deployment_id
        and t.thread_id = p_thread_id
        and not t.is_deleted;
    if not found then
        code := 'thread_not_found';
        return;
    end if;

    code := 'ok';
    -- The loop reads ahead, but only rows: large values are fetched when they are rendered. A row after
    -- the limit means that there is a next page.
    for v_run in
        select r.*
          from agent.runs r
         where r.deployment_id = p_deployment_id
           and r.thread_id = p_thread_id
           and (p_status is null or r.status = p_status)
         order by r.thread_seq desc
         limit p_limit + 1 offset p_offset
    loop
        if v_count < p_limit then
            if p_lists_keys then
                v_record := v_run.run_id;
                v_bytes := v_bytes + agent.run_bytes(v_run);
            elsif v_bytes + agent.stored_run_bytes(v_run) > p_max_bytes then
                return;
            else
                v_record := agent.render_run(v_run);
                v_bytes := v_bytes + octet_length(v_record);
            end if;
        end if;
        if agent.is_full_page(v_count, p_limit, v_bytes) then
            next := p_offset + v_count;
            exit;
        end if;
        if p_select is not null and not p_lists_keys then
            v_record := agent.pick_members(v_record::json, p_select);
        end if;
        v_records := array_append(v_records, v_record);
        v_count := v_count + 1;
    end loop;
    body := case
        when p_lists_keys then v_records::text
        when v_bytes <= p_max_bytes is not false then '[' || array_to_string(v_records, ',') || ']'
    end;
end
$function$;

comment on function agent.list_runs(uuid, uuid, integer, integer, text, text[], bigint, boolean) is
    'GET /threads/{thread_id}/runs.';
