-- SPDX-License-Identifier: Apache-2.0
-- A checkpoint as the API shows the state of a thread. p_row: a row of nulls for a thread without a state. p_metadata:
-- the result of agent.render_checkpoint_metadata. p_select: the members to show; null or {} for all. p_max_bytes: as in
-- agent.get_state.
-- p_subgraph_bytes, p_depth: for agent.add_subgraphs; null: the tasks show no states of subgraphs.
-- p_with_pending: with the pending writes of the tasks (agent.apply_report).
-- Returns: the text of the state; cursor: as in agent.get_state; left_bytes: as in agent.add_subgraphs.
-- Locks:   none.
create or replace function agent.render_state(
    p_row agent.checkpoints,
    p_metadata json,
    p_select text[],
    p_max_bytes bigint,
    p_subgraph_bytes bigint default null,
    p_depth integer default 0,
    p_with_pending boolean default false,
    out body text,
    out cursor text,
    out left_bytes bigint
)
language plpgsql stable security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_hashjoin = off
set plan_cache_mode = force_generic_plan
as $function$
declare
    v_tasks  json;
    v_object json;
    v_values text;
    v_report record;
begin
    v_report := agent.apply_report(p_row, p_with_pending);
    p_row := v_report.shown;
    v_tasks := p_row.tasks;
    if v_tasks::text <> '[]' then
        v_tasks := agent.render_tasks(
            p_row.deployment_id, p_row.thread_id, p_row.checkpoint_ns, p_row.checkpoint_id, v_tasks);
    end if;
    left_bytes := p_subgraph_bytes;
    if p_subgraph_bytes is not null and json_array_length(coalesce(v_tasks, '[]')) > 0 then
        select s.tasks, s.left_bytes into v_tasks, left_bytes
          from agent.add_subgraphs(
                   p_row.deployment_id, p_row.thread_id, p_row.checkpoint_ns, v_tasks, p_subgraph_bytes, p_depth) s;
    end if;
    v_object := json_build_object(
        'next', coalesce(p_row.next, '[]'),
        'tasks', coalesce(v_tasks, '[]'),
        'metadata', coalesce(case
            when p_select <> '{}' and 'metadata' <> all (p_select) then p_metadata
            else agent.add_writes(
                p_row.deployment_id, p_row.thread_id, p_row.checkpoint_ns, p_row.parent_checkpoint_id, p_row.run_id,
                p_row.created_at, p_metadata)
        end, '{}'),
        'created_at', agent.render_time(p_row.created_at),
        'checkpoint_id', p_row.checkpoint_id,
        'parent_checkpoint_id', p_row.parent_checkpoint_id,
        'checkpoint', agent.render_checkpoint(p_row.thread_id, p_row.checkpoint_id, p_row.checkpoint_ns),
        'parent_checkpoint', agent.render_checkpoint(
            p_row.thread_id, p_row.parent_checkpoint_id, p_row.checkpoint_ns),
        'interrupts', (agent.render_interrupts(v_tasks)).flat);
    if p_select <> '{}' then
        v_object := agent.pick_members(v_object, p_select);
        if 'values' <> all (p_select) then
            body := v_object;
            return;
        end if;
    end if;
    select coalesce(v.content, '{}'),
           v.cursor || case when p_row.checkpoint_ns <> '' then '.' || p_row.checkpoint_ns else '' end
      into v_values, cursor
      from agent.compose_bounded_values(
               p_row.deployment_id, p_row.thread_id, p_row.checkpoint_id, p_row.channels, p_row.state_bytes,
               p_max_bytes, v_report.mark) v;
    body := agent.append_values(v_object, v_values);
end
$function$;

comment on function agent.render_state(agent.checkpoints, json, text[], bigint, bigint, integer, boolean) is
    'A checkpoint as the API shows the state of a thread.';
