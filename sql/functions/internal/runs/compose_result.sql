-- SPDX-License-Identifier: Apache-2.0
-- The values that a final run left, with __interrupt__ added when the run succeeded and stopped at an interrupt. It
-- takes the place of a value that is not an object.
-- p_checkpoint_id: null = the last one of the run.
-- Returns: content: the JSON text; null when there is no such checkpoint.
--          cursor: as in agent.get_state, for values of more than p_max_bytes (null = no limit).
-- Locks:   none.
create or replace function agent.compose_result(
    p_run agent.runs,
    p_max_bytes bigint default null,
    p_checkpoint_id uuid default null,
    out content text,
    out cursor text
)
language plpgsql stable security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_hashjoin = off
set plan_cache_mode = force_generic_plan
as $function$
declare
    v_next          json;
    v_tasks         json;
    v_checkpoint_id uuid := coalesce(p_checkpoint_id, p_run.last_checkpoint_id);
    v_interrupts    json;
begin
    select v.content, v.cursor, c.next, c.tasks
      into content, cursor, v_next, v_tasks
      from agent.checkpoints c
     cross join lateral agent.apply_report(c, false) u
     cross join lateral agent.compose_bounded_values(
            c.deployment_id, c.thread_id, c.checkpoint_id, (u.shown).channels, (u.shown).state_bytes, p_max_bytes,
            u.mark) v
     where c.deployment_id = p_run.deployment_id
       and c.thread_id = p_run.thread_id
       and c.checkpoint_ns = ''
       and c.checkpoint_id = v_checkpoint_id;
    if json_array_length(v_next) > 0 and p_run.status = 'success' then
        select i.flat into v_interrupts
          from agent.render_interrupts(
                 agent.render_tasks(p_run.deployment_id, p_run.thread_id, '', v_checkpoint_id, v_tasks)) i;
        if json_array_length(v_interrupts) > 0 then
            if not starts_with(content, '{') then
                content := '{}';
                cursor := null;
            end if;
            content := agent.add_to_values(content, '__interrupt__', v_interrupts);
        end if;
    end if;
end
$function$;

comment on function agent.compose_result(agent.runs, bigint, uuid) is 'The values that a final run left.';
