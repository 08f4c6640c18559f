-- SPDX-License-Identifier: Apache-2.0
-- POST /threads/{thread_id}/runs/{run_id}/cancel. A run that no worker holds ends at once; a leased one gets
-- the cancel flag and ends when its worker has stopped it. p_action: interrupt or rollback. p_reason: why, null for no
-- text.
-- Returns: ok, changed: thread and run when this call ended the run, else null; run_not_found; run_finished.
-- Locks:   the thread, then the queue row, then the record; none when the run is final.
create or replace function agent.cancel_run(
    p_deployment_id uuid,
    p_thread_id uuid,
    p_run_id uuid,
    p_action text,
    p_reason text default null,
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
    v_row    agent.run_queue;
    v_reason text := agent.render_cancel_reason(p_reason);
begin
    select r.status into v_status
      from agent.find_run(p_deployment_id, p_thread_id, p_run_id) r;
    if not found then
        code := 'run_not_found';
        return;
    elsif v_status <> 'pending' then
        code := 'run_finished';
        body := 'Run is already ' || v_status;
        return;
    end if;

    perform from agent.threads t
      where t.deployment_id = p_deployment_id
        and t.thread_id = p_thread_id
        for no key update;
    select q.* into v_row
      from agent.run_queue q
     where q.run_id = p_run_id
       and q.deployment_id is not distinct from p_deployment_id
       for update;
    if not found then
        -- It ended while this waited for the locks, or the deletion of the thread began.
        select r.status into v_status
          from agent.find_run(p_deployment_id, p_thread_id, p_run_id) r;
        code := case when found then 'run_finished' else 'run_not_found' end;
        body := case when found then 'Run is already ' || v_status end;
        return;
    end if;

    code := 'ok';
    if v_row.state = 'leased' then
        update agent.run_queue q
           set cancel = agent.stronger_cancel(q.cancel, p_action),
               cancel_reason = coalesce(q.cancel_reason, v_reason)
         where q.run_id = p_run_id
           and q.deployment_id is not distinct from p_deployment_id;
        return;
    end if;
    v_row.cancel_reason := coalesce(v_row.cancel_reason, v_reason);
    changed := p_thread_id || ' ' || p_run_id;
    if p_action = 'rollback' then
        perform agent.rollback_run(null, v_row, agent.deletion_bytes());
    else
        perform agent.finalize_runs(null, array[agent.make_end(v_row, 'interrupted')]);
    end if;
end
$function$;

comment on function agent.cancel_run(uuid, uuid, uuid, text, text) is
    'POST /threads/{thread_id}/runs/{run_id}/cancel.';
