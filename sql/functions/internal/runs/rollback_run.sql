-- SPDX-License-Identifier: Apache-2.0
-- Deletes an unfinished run: record, events, checkpoints and queue row. The thread's head becomes again what
-- it was when the run became ready. Usage and the outbox keep a row. p_worker_id as in agent.finalize_runs, p_bytes
-- as in agent.discard_run.
-- Returns: whether the next run of the thread became ready.
-- Locks:   the caller holds the thread and the queue row; takes the record.
create or replace function agent.rollback_run(
    p_worker_id bigint,
    p_row agent.run_queue,
    p_bytes bigint
) returns boolean
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $function$
declare
    v_moved boolean;
    v_end   agent.run_end := agent.make_end(p_row, 'interrupted');
begin
    insert into agent.usage_events (
        deployment_id, run_id, thread_id, assistant_id, graph_id, status, attempts, epoch, worker_id,
        created_at, started_at, finished_at)
    select r.deployment_id, r.run_id, r.thread_id, r.assistant_id, r.graph_id, 'rolled_back',
           p_row.attempts, p_row.epoch, p_worker_id, r.created_at, p_row.started_at, agent.now()
      from agent.runs r
     where r.run_id = p_row.run_id
       and r.deployment_id is not distinct from p_row.deployment_id;

    perform agent.record_webhooks(array[v_end], true);
    select t.head_run_id = p_row.run_id into v_moved
      from agent.threads t
     where t.deployment_id = p_row.deployment_id
       and t.thread_id = p_row.thread_id;
    perform agent.discard_run(p_row.deployment_id, p_row.thread_id, p_row.run_id, p_bytes);
    if v_moved then
        perform agent.move_head(p_row.deployment_id, p_row.thread_id, p_row.base_checkpoint_id);
    end if;

    delete from agent.run_queue q
     where q.run_id = p_row.run_id
       and q.deployment_id is not distinct from p_row.deployment_id;
    perform agent.count_ended_runs(array[p_row]);
    return agent.promote_next_runs(array[v_end]);
end
$function$;

comment on function agent.rollback_run(bigint, agent.run_queue, bigint) is
    'Deletes an unfinished run and its effects.';
