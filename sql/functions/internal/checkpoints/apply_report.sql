-- SPDX-License-Identifier: Apache-2.0
-- A checkpoint with what runs have reported of its state (PROTOCOL.md, `task`): the update of a command or, with
-- p_with_pending, the pending writes of its tasks as the last run that stopped there reported them, whichever is newer.
-- A report of more than 256 KB, which would be read again for each part of the values, is left out if the values and it
-- have more than 16 MB together.
-- p_row: null, or a row of nulls, for none. p_mark: the mark of an earlier call: that report and no other is shown.
-- Returns: shown: the row, which is sent whole when state_bytes is null; with p_mark null when the report is gone.
--          mark: that of the report, for cursors of agent.read_values; null for none.
-- Locks:   none.
create or replace function agent.apply_report(
    p_row agent.checkpoints,
    p_with_pending boolean,
    p_mark text default null,
    out shown agent.checkpoints,
    out mark text
)
language plpgsql stable security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set enable_hashjoin = off set enable_mergejoin = off set plan_cache_mode = force_generic_plan
as $function$
declare
    c_part_bytes  constant bigint := 262144;
    c_whole_bytes constant bigint := 16777216;
    v_saved_at    constant timestamptz := 'epoch'::timestamptz + substr(p_mark, 2)::bigint * interval '1 microsecond';
    v_until       constant timestamptz := coalesce(v_saved_at, 'infinity');
    v_report      record;
begin
    select r.kind, r.task, r.saved_at, octet_length(r.task) as bytes into v_report
      from (
            select 'p' as kind, t.task, t.saved_at
              from agent.find_task_report(
                       p_row.deployment_id, p_row.thread_id, p_row.checkpoint_ns, p_row.checkpoint_id,
                       agent.pending_id(), v_until) t
             where p_with_pending
             union all
            select 'u', t.task, t.saved_at
              from agent.find_task_report(
                       p_row.deployment_id, p_row.thread_id, p_row.checkpoint_ns, p_row.checkpoint_id,
                       agent.update_id(), v_until) t
           ) r
     where case
               when p_mark is not null then r.kind = left(p_mark, 1) and r.saved_at = v_saved_at
               when octet_length(r.task) > c_part_bytes
                    and p_row.state_bytes + octet_length(r.task) > c_whole_bytes then false
               when r.kind = 'u' then true
               else json_typeof(r.task::json -> 'values') = 'object' and json_typeof(r.task::json -> 'next') = 'array'
           end
     order by r.saved_at desc, r.kind
     limit 1;
    if not found then
        shown := case when p_mark is null then p_row end;
        return;
    end if;
    mark := v_report.kind || (extract(epoch from v_report.saved_at) * 1000000)::bigint;
    shown := case v_report.kind
        when 'p' then agent.apply_pending(p_row, v_report.task::json)
        else agent.apply_update(p_row, v_report.task::json)
    end;
    shown.state_bytes := case when v_report.bytes <= c_part_bytes then (
        select coalesce(sum(c.bytes), 0)
          from unnest(shown.channels) c) end;
end
$function$;

comment on function agent.apply_report(agent.checkpoints, boolean, text) is
    'A checkpoint with what runs have reported of its state.';
