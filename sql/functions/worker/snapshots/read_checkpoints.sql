-- SPDX-License-Identifier: Apache-2.0
-- Answers checkpoint.list (worker/README.md): snapshots without their values, newest first in each namespace.
-- The runner reads the values of those that it needs with checkpoint.get.
-- p_args: {"ns": null for all namespaces, in descending order; "before": only smaller ids; "filter": an object whose
--         members equal those of the metadata; "limit": the maximum number in this part, null for no limit; "after":
--         the "next" of the previous part}.
-- p_cursor: ignored; the position is in the arguments.
-- Returns: ok with {"tuples": [...], "next": {"ns", "checkpoint_id"} or null}. A part may be empty and have a next one.
-- Bound:   p_max_bytes and one snapshot; of the metadata 1,000 are compared with the filter, or 16 MB and one of them.
--          Held by `v_left <= 0 or v_examined >= c_examined or v_compared > c_compared_bytes`.
-- Locks:   none.
create or replace function agent.read_checkpoints(
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
set enable_sort = off set plan_cache_mode = force_generic_plan
as $function$
declare
    c_examined       constant integer := 1000;
    c_compared_bytes constant bigint := 16777216;
    c_last           constant uuid := 'ffffffff-ffff-ffff-ffff-ffffffffffff';
    v_ns             text := p_args ->> 'ns';
    v_before         uuid := coalesce(p_args ->> 'before', c_last::text);
    v_filter         jsonb := coalesce(p_args ->> 'filter', '{}');
    v_members        record;
    v_limit          integer := (p_args ->> 'limit')::integer;
    v_from_ns        text := coalesce(p_args #>> '{after,ns}', v_ns);
    v_from_id        uuid := coalesce(p_args #>> '{after,checkpoint_id}', v_before::text);
    v_row            agent.checkpoint_snapshots;
    v_matches        boolean := true;
    v_text           text;
    v_next           json;
    v_left           integer := p_max_bytes;
    v_examined       integer := 0;
    v_compared       bigint := 0;
    v_parts          text[] := '{}';
begin
    if jsonb_typeof(v_filter) <> 'object' or v_limit < 0 then
        raise exception using errcode = 'invalid_parameter_value', message = 'a list has wrong arguments';
    end if;
    select m.scalars, m.others into v_members from agent.split_members(v_filter) m;
    if v_from_ns is null then
        select x.checkpoint_ns into v_from_ns
          from agent.checkpoint_snapshots x
         where x.deployment_id = p_deployment_id
           and x.thread_id = p_thread_id
         order by x.deployment_id desc, x.thread_id desc, x.checkpoint_ns desc
         limit 1;
        v_from_id := c_last;
    end if;
    for v_row in
        select x.*
          from agent.checkpoint_snapshots x
         where x.deployment_id = p_deployment_id
           and x.thread_id = p_thread_id
           and (x.checkpoint_ns, x.checkpoint_id) < (v_from_ns, v_from_id)
           and (x.run_id in (select s.run_id from agent.find_swept_runs(p_deployment_id, p_thread_id) s)) is not true
         order by x.deployment_id desc, x.thread_id desc, x.checkpoint_ns desc, x.checkpoint_id desc
    loop
        exit when v_row.checkpoint_ns <> v_ns or cardinality(v_parts) >= v_limit;
        if v_left <= 0 or v_examined >= c_examined or v_compared > c_compared_bytes then
            v_next := json_build_object('ns', v_from_ns, 'checkpoint_id', v_from_id);
            exit;
        end if;
        v_examined := v_examined + 1;
        v_from_ns := v_row.checkpoint_ns;
        v_from_id := v_row.checkpoint_id;
        continue when v_from_id >= v_before;
        if v_filter <> '{}' then
            -- Fetched once.
            v_row.metadata := v_row.metadata || '{}';
            v_compared := v_compared + pg_column_size(v_row.metadata);
            v_matches := agent.has_members(v_row.metadata, v_members.scalars, v_members.others);
        end if;
        if v_matches then
            v_text := agent.render_snapshot(v_row);
            v_parts := v_parts || v_text;
            v_left := v_left - octet_length(v_text);
        end if;
    end loop;
    code := 'ok';
    body := '{"tuples":[' || array_to_string(v_parts, ',') || '],"next":' || coalesce(v_next::text, 'null') || '}';
end
$function$;

comment on function agent.read_checkpoints(uuid, uuid, json, text, integer) is
    'The snapshots of a thread, without their values.';
