-- SPDX-License-Identifier: Apache-2.0
-- The length of the state that the runner of a claimed run or call reads, measured when the state was saved: for a
-- message that is not composed yet. The checkpoint is that of agent.compose_start or agent.compose_call.
-- p_op: the operation of a call, null for a run.
-- Returns: bytes; 0 for a thread without a state, and for a call that changes nothing, which does not read it.
-- Locks:   none.
create or replace function agent.measure_state(
    p_deployment_id uuid,
    p_run_id uuid,
    p_thread_id uuid,
    p_op text
) returns bigint
language plpgsql stable security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $function$
declare
    v_ns            text := '';
    v_checkpoint_id uuid;
begin
    if p_op is null then
        select x.start_checkpoint_id into v_checkpoint_id
          from agent.runs x
         where x.run_id = p_run_id
           and x.deployment_id is not distinct from p_deployment_id;
    elsif p_op = 'update' then
        select x.checkpoint_ns, x.checkpoint_id into v_ns, v_checkpoint_id
          from agent.calls x
         where x.call_id = p_run_id
           and x.deployment_id is not distinct from p_deployment_id;
    else
        return 0;
    end if;
    return coalesce((
        select x.state_bytes
          from agent.choose_start(p_deployment_id, p_run_id, p_thread_id, v_checkpoint_id) c
         cross join lateral (
                select k.state_bytes
                  from agent.checkpoints k
                 where k.deployment_id = p_deployment_id
                   and k.thread_id = p_thread_id
                   and k.checkpoint_ns = v_ns
                   and k.checkpoint_id = c.checkpoint_id
                 limit 1
               ) x), 0);
end
$function$;

comment on function agent.measure_state(uuid, uuid, uuid, text) is
    'Length of the state that a claimed run or call reads.';
