-- SPDX-License-Identifier: Apache-2.0
-- DELETE /threads/{thread_id}/runs/{run_id}, with its events and checkpoints. When the run saved the thread's
-- head, the head becomes the nearest checkpoint of another run. An executing run that may continue what the deleted one
-- saved (agent.may_continue_run) begins again, since that is no longer stored.
-- Returns: ok, changed: thread, run, and the run that begins again; run_not_found; run_active when the run is not
--          final.
-- Locks:   the thread, then the record and the queue row of the active run.
create or replace function agent.delete_run(
    p_deployment_id uuid,
    p_thread_id uuid,
    p_run_id uuid,
    out code text,
    out body text,
    out changed text
)
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $function$
declare
    v_status text;
    v_thread agent.threads;
    v_active agent.run_queue;
    v_head   uuid;
begin
    -- A run that does not exist or is not final is refused without a lock.
    select r.status into v_status
      from agent.find_run(p_deployment_id, p_thread_id, p_run_id) r;
    if not found then
        code := 'run_not_found';
        return;
    elsif v_status = 'pending' then
        code := 'run_active';
        return;
    end if;

    select t.* into v_thread
      from agent.threads t
     where t.deployment_id = p_deployment_id
       and t.thread_id = p_thread_id
       for no key update;
    perform from agent.runs r
      where r.run_id = p_run_id
        and r.deployment_id is not distinct from p_deployment_id
        for update;
    if not found then
        code := 'run_not_found';
        return;
    end if;

    code := 'ok';
    changed := p_thread_id || ' ' || p_run_id;
    if agent.may_continue_run(v_thread, p_run_id) then
        select q.* into v_active
          from agent.run_queue q
         where q.run_id = v_thread.active_run_id
           and q.deployment_id is not distinct from p_deployment_id
           for no key update;
    end if;
    if v_active.state = 'leased' then
        perform agent.requeue_run(v_active, false, null);
        changed := changed || ' ' || v_active.run_id;
    end if;

    -- A rollback of the active run must not restore a deleted checkpoint.
    update agent.run_queue q
       set base_checkpoint_id = agent.skip_checkpoints(
               p_deployment_id, p_thread_id, p_run_id, q.base_checkpoint_id)
     where q.run_id = v_thread.active_run_id
       and q.deployment_id is not distinct from p_deployment_id;
    if v_thread.head_run_id = p_run_id then
        v_head := agent.skip_checkpoints(p_deployment_id, p_thread_id, p_run_id, v_thread.head_checkpoint_id);
    end if;
    perform agent.discard_run(p_deployment_id, p_thread_id, p_run_id, agent.deletion_bytes());
    if v_thread.head_run_id = p_run_id then
        perform agent.move_head(p_deployment_id, p_thread_id, v_head);
        update agent.threads t
           set status = case
                   when t.status = 'busy' then 'busy'
                   when t.head_has_next then 'interrupted'
                   else 'idle'
               end
         where t.deployment_id = p_deployment_id
           and t.thread_id = p_thread_id;
    end if;
end
$function$;

comment on function agent.delete_run(uuid, uuid, uuid) is
    'DELETE /threads/{thread_id}/runs/{run_id}.';
