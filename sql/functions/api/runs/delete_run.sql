-- SPDX-License-Identifier: Apache-2.0
-- DELETE /threads/{thread_id}/runs/{run_id}, with its events and checkpoints. When the run saved the thread's
-- head, the head becomes the nearest checkpoint of another run. An executing run that may continue from a
-- checkpoint of the deleted one (agent.may_continue_run) is requeued, since that checkpoint is no longer stored.
-- Nothing is deleted before the new head is known. A call skips as many checkpoints as fit into agent.deletion_bytes(),
-- each counted with 1,000 bytes; then the caller calls again with the returned body as p_cursor, in another
-- transaction.
-- Returns: ok, changed: thread, run, and the requeued run; waiting: call again; run_not_found; run_active
--          when the run is not final.
-- Locks:   the thread, then the record and the queue row of the active run.
create or replace function agent.delete_run(
    p_deployment_id uuid,
    p_thread_id uuid,
    p_run_id uuid,
    p_cursor text default null,
    out code text,
    out body text,
    out changed text
)
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $function$
declare
    c_step_bytes constant integer := 1000;
    v_status text;
    v_thread agent.threads;
    v_active agent.run_queue;
    v_base   uuid;
    v_steps  bigint;
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

    -- A rollback of the active run restores the head that it found. Until the run saves a checkpoint that is the head
    -- of the thread, so that one chain of parents has to be followed, not two.
    select q.* into v_active
      from agent.run_queue q
     where q.run_id = v_thread.active_run_id
       and q.deployment_id is not distinct from p_deployment_id;
    select s.checkpoint_id, s.cursor, s.steps into v_base, body, v_steps
      from agent.skip_checkpoints(
               p_deployment_id, p_thread_id, p_run_id,
               case when v_thread.head_run_id = p_run_id then v_thread.head_checkpoint_id
                    else v_active.base_checkpoint_id end,
               p_cursor, (agent.deletion_bytes() - 1) / c_step_bytes) s;
    if body is not null then
        code := 'waiting';
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
        if v_active.state = 'leased' then
            perform agent.requeue_run(v_active, false, null);
            changed := changed || ' ' || v_active.run_id;
        end if;
    end if;

    -- A rollback of the active run must not restore a deleted checkpoint.
    update agent.run_queue q
       set base_checkpoint_id = v_base
     where q.run_id = v_thread.active_run_id
       and q.deployment_id is not distinct from p_deployment_id;
    perform agent.discard_run(
        p_deployment_id, p_thread_id, p_run_id, agent.deletion_bytes() - c_step_bytes * v_steps);
    if v_thread.head_run_id = p_run_id then
        perform agent.move_head(p_deployment_id, p_thread_id, v_base);
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

comment on function agent.delete_run(uuid, uuid, uuid, text) is
    'DELETE /threads/{thread_id}/runs/{run_id}.';
