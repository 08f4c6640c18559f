-- SPDX-License-Identifier: Apache-2.0
-- GET and POST /threads/{thread_id}/history. p_request: limit (10), before (the id of a checkpoint, or an object that
-- names one), metadata (members with which those of the checkpoint's metadata are equal), checkpoint (checkpoint_ns,
-- checkpoint_id), select.
-- Returns: ok with an array of states, newest first, [] for none; next: `before` of the next page, null after the
--          last; thread_not_found. body null: the states have more than p_max_bytes (null = no limit), or more than 100
--          checkpoints do not match; the rest was not read.
--          p_lists_keys: the ids of the checkpoints instead of the states, an array for agent.read_page.
-- Bound:   16 MB of states, but at least one; 10,000 checkpoints, or 16 MB of their metadata, that do not match.
--          Held by `agent.is_full_page(v_count, v_limit, v_bytes)`,
--          `p_bytes > 16777216` in sql/functions/inline/base/is_full_page.sql and
--          `v_others > c_others or v_passed > c_passed_bytes`.
-- Locks:   none.
create or replace function agent.get_history(
    p_deployment_id uuid,
    p_thread_id uuid,
    p_request json,
    p_max_bytes bigint default null,
    p_lists_keys boolean default false,
    out code text,
    out body text,
    out next text
)
language plpgsql stable security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off
set enable_sort = off set plan_cache_mode = force_generic_plan
as $function$
declare
    c_others       constant integer := 10000;
    c_passed_bytes constant bigint := 16777216;
    c_at_once      constant integer := 100;
    v_limit        integer := coalesce((p_request ->> 'limit')::integer, 10);
    v_ns           text := coalesce(p_request #>> '{checkpoint,checkpoint_ns}', '');
    v_id           uuid := p_request #>> '{checkpoint,checkpoint_id}';
    v_before       uuid := coalesce(
        p_request #>> '{before,checkpoint_id}', p_request #>> '{before,configurable,checkpoint_id}',
        case when json_typeof(p_request -> 'before') = 'string' then p_request ->> 'before' end);
    v_filter       jsonb := nullif((p_request -> 'metadata')::jsonb, 'null');
    v_members      record;
    v_select       text[] := agent.read_words(p_request -> 'select');
    v_has_values   boolean := coalesce(v_select = '{}' or 'values' = any (v_select), true);
    v_row          agent.checkpoints;
    v_metadata     json;
    v_record       text;
    v_records      text[] := '{}';
    v_bytes        bigint := 0;
    v_count        integer := 0;
    v_others       integer := 0;
    v_passed       bigint := 0;
    v_last         uuid;
begin
    perform from agent.threads t
      where t.deployment_id = p_deployment_id
        and t.thread_id = p_thread_id
        and not t.is_deleted;
    if not found then
        code := 'thread_not_found';
        return;
    end if;
    if v_ns <> '' then
        v_ns := agent.find_namespace(p_deployment_id, p_thread_id, v_ns);
    end if;
    select m.scalars, m.others into v_members from agent.split_members(v_filter) m;
    code := 'ok';
    -- The loop reads ahead, but only rows: large values are fetched when they are rendered.
    for v_row in
        select k.*
          from agent.checkpoints k
         where k.deployment_id = p_deployment_id
           and k.thread_id = p_thread_id
           and k.checkpoint_ns = v_ns
           and k.checkpoint_id < coalesce(v_before, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
           and k.checkpoint_id between coalesce(v_id, '00000000-0000-0000-0000-000000000000')
           and coalesce(v_id, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
           and (k.run_id in (
                select s.run_id
                  from agent.find_swept_runs(p_deployment_id, p_thread_id) s)) is not true
         order by k.checkpoint_id desc
    loop
        if agent.is_full_page(v_count, v_limit, v_bytes) or v_others > c_others or v_passed > c_passed_bytes then
            next := v_last;
            exit;
        end if;
        if v_bytes + v_passed + (case when v_has_values then v_row.state_bytes else 0 end)
            + agent.stored_bytes(v_row.tasks) + agent.stored_bytes(v_row.metadata) > p_max_bytes
           or p_max_bytes is not null and v_others > c_at_once
        then
            return;
        end if;
        v_last := v_row.checkpoint_id;
        select o.metadata into v_metadata
          from agent.render_checkpoint_metadata(
                   p_deployment_id, p_thread_id, v_row.checkpoint_id, v_row.run_id, v_row.metadata) o;
        if v_filter ? 'writes' then
            v_metadata := agent.add_writes(
                p_deployment_id, p_thread_id, v_row.checkpoint_ns, v_row.parent_checkpoint_id, v_row.run_id,
                v_row.created_at, v_metadata);
        end if;
        if v_filter is not null and not agent.has_members(v_metadata::jsonb, v_members.scalars, v_members.others) then
            v_others := v_others + 1;
            v_passed := v_passed + octet_length(v_metadata::text);
            continue;
        end if;
        if p_lists_keys then
            v_record := v_row.checkpoint_id;
            v_bytes := v_bytes + (case when v_has_values then v_row.state_bytes else 0 end)
                + agent.value_bytes(v_row.tasks) + octet_length(v_metadata::text);
        else
            select s.body into v_record from agent.render_state(v_row, v_metadata, v_select, null) s;
            v_bytes := v_bytes + octet_length(v_record);
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

comment on function agent.get_history(uuid, uuid, json, bigint, boolean) is 'GET /threads/{thread_id}/history.';
