-- SPDX-License-Identifier: Apache-2.0
-- Deletes the writes, snapshots, checkpoints and reports about tasks of a deleted run, up to p_bytes. If rows are left
-- the run is recorded in agent.run_sweeps: they are hidden from then on (agent.find_swept_runs), and agent.sweep_state
-- deletes them.
-- Nothing is deleted here while children of a checkpoint of another run are being attached (is_attaching of
-- agent.run_sweeps). The thread is consistent after each piece.
-- Returns: the unused part of p_bytes; 0 when something may be left.
-- Locks:   the caller holds the thread.
create or replace function agent.delete_run_state(
    p_deployment_id uuid,
    p_thread_id uuid,
    p_run_id uuid,
    p_bytes bigint
) returns bigint
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set plan_cache_mode = force_generic_plan
as $function$
declare
    v_left bigint;
begin
    update agent.threads t
       set state_deletions = t.state_deletions + 1
     where t.deployment_id = p_deployment_id
       and t.thread_id = p_thread_id;
    if exists (
        select from agent.run_sweeps s
         where s.deployment_id = p_deployment_id
           and s.thread_id = p_thread_id
           and s.run_id <> p_run_id
           and s.is_attaching)
    then
        insert into agent.run_sweeps (deployment_id, thread_id, run_id)
        values (p_deployment_id, p_thread_id, p_run_id)
            on conflict do nothing;
        return 0;
    end if;
    -- First, so that the writes to its snapshots that are left then are those of other runs.
    v_left := agent.delete_writes(p_deployment_id, p_thread_id, p_run_id, p_bytes);
    if v_left > 0 then
        v_left := agent.discard_checkpoints(p_deployment_id, p_thread_id, p_run_id, true, v_left);
    end if;
    if v_left > 0 then
        v_left := agent.discard_checkpoints(p_deployment_id, p_thread_id, p_run_id, false, v_left);
    end if;
    if v_left > 0 then
        v_left := coalesce(agent.delete_tasks(p_deployment_id, p_run_id, v_left), 0);
    end if;
    if v_left > 0 then
        delete from agent.run_sweeps s
         where s.deployment_id = p_deployment_id
           and s.thread_id = p_thread_id
           and s.run_id = p_run_id;
        return v_left;
    end if;
    insert into agent.run_sweeps (deployment_id, thread_id, run_id)
    values (p_deployment_id, p_thread_id, p_run_id)
        on conflict do nothing;
    return 0;
end
$function$;

comment on function agent.delete_run_state(uuid, uuid, uuid, bigint) is
    'Deletes the writes, snapshots, checkpoints and reports about tasks of a deleted run.';
