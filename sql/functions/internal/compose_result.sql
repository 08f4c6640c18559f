-- SPDX-License-Identifier: Apache-2.0
-- The values that a final run left, with __interrupt__ added when the run succeeded and stopped before the
-- end of the graph: at a breakpoint or an interrupt.
-- Returns: the JSON object; null when the run saved no checkpoint.
-- Locks:   none.
create or replace function agent.compose_result(p_run agent.runs) returns text
language plpgsql stable security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_hashjoin = off
set plan_cache_mode = force_generic_plan
as $function$
declare
    v_values     json;
    v_next       json;
    v_interrupts json;
begin
    select v.content, c.next, i.flat
      into v_values, v_next, v_interrupts
      from agent.checkpoints c
     cross join lateral agent.compose_values(c.deployment_id, c.thread_id, c.channels) v
     cross join lateral agent.render_interrupts(
            agent.render_tasks(c.deployment_id, c.thread_id, c.checkpoint_ns, c.checkpoint_id, c.tasks)) i
     where c.deployment_id = p_run.deployment_id
       and c.thread_id = p_run.thread_id
       and c.checkpoint_ns = ''
       and c.checkpoint_id = p_run.last_checkpoint_id;
    if json_array_length(v_next) > 0 and p_run.status = 'success' then
        v_values := agent.concat_objects(
            v_values, json_build_object('__interrupt__', v_interrupts));
    end if;
    return v_values;
end
$function$;

comment on function agent.compose_result(agent.runs) is 'The values that a final run left.';
