-- SPDX-License-Identifier: Apache-2.0
-- DELETE /threads/{thread_id}/runs/{run_id}, with its events and checkpoints. When the run saved the thread's
-- head, the head becomes the nearest checkpoint of another run. An executing run that began with the state of the
-- deleted one, and has saved none of its own, begins again, since it continues a state that is no longer stored; so does
-- one that may continue the last snapshot of a namespace, which the deleted run put.
-- Returns: ok, changed: thread, run, and the run that begins again; run_not_found; run_active when the run is not final.
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
      from agent.runs r
     where r.run_id = p_run_id
       and r.deployment_id is not distinct from p_deployment_id
       and r.thread_id is not distinct from p_thread_id;
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
    select q.* into v_active
      from agent.run_queue q
     where q.run_id = v_thread.active_run_id
       and q.deployment_id is not distinct from p_deployment_id
       and (v_thread.head_run_id is distinct from q.run_id
       and p_run_id = (
            select c.run_id
              from agent.checkpoints c
             where c.deployment_id = p_deployment_id
               and c.thread_id = p_thread_id
               and c.checkpoint_ns = ''
               and c.checkpoint_id = coalesce((
                    select r.start_checkpoint_id
                      from agent.runs r
                     where r.run_id = q.run_id
                       and r.deployment_id is not distinct from p_deployment_id), (
                    select l.checkpoint_id
                      from agent.calls l
                     where l.call_id = q.run_id
                       and l.deployment_id is not distinct from p_deployment_id), v_thread.head_checkpoint_id))
        or exists (
            select from (
                    select distinct x.checkpoint_ns
                      from agent.checkpoint_snapshots x
                     where x.run_id = p_run_id
                       and uuid_hash_extended(x.thread_id, 0) = uuid_hash_extended(p_thread_id, 0)
                       and x.deployment_id is not distinct from p_deployment_id
                       and x.thread_id is not distinct from p_thread_id
                    ) n
             where p_run_id = (
                    select k.run_id
                      from agent.checkpoint_snapshots k
                     where k.deployment_id = p_deployment_id
                       and k.thread_id = p_thread_id
                       and k.checkpoint_ns = n.checkpoint_ns
                     order by k.deployment_id desc, k.thread_id desc, k.checkpoint_ns desc, k.checkpoint_id desc
                     limit 1)))
       for no key update;
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
    v_head := agent.discard_run(p_deployment_id, p_thread_id, p_run_id);
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
