-- SPDX-License-Identifier: Apache-2.0
-- Ends a leased run in error: its output cannot be stored, it cannot be released, or its account may store no more.
-- A cancel is ignored; checkpoints and events are kept. p_run_id null: the run that agent.mark_worker_dead would
-- release first.
-- Returns: the run with outcome error; no row when the worker no longer holds the lease.
-- Locks:   the thread, then the queue row, then the record.
create or replace function agent.fail_run(
    p_worker_id bigint,
    p_deployment_id uuid,
    p_run_id uuid,
    p_epoch integer,
    p_error text,
    p_message text
) returns table (run_id uuid, thread_id uuid, outcome text)
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $function$
#variable_conflict use_column
declare
    v_run agent.leased_run;
    v_row agent.run_queue;
begin
    if p_run_id is not null then
        v_run := agent.make_leased_run(p_deployment_id, p_run_id, p_epoch);
    else
        v_run := (
            select agent.make_leased_run(l.deployment_id, l.run_id, l.epoch)
              from (
                    select q.deployment_id, q.run_id, q.epoch
                      from agent.run_queue q
                     where q.worker_id = p_worker_id
                    offset 0
                   ) l
             order by l.run_id
             limit 1);
    end if;
    perform agent.lock_leases(p_worker_id, array[v_run]);
    select q.* into v_row
      from agent.find_lease(p_worker_id, v_run.deployment_id, v_run.run_id, v_run.epoch) q;
    if not found then
        return;
    end if;
    perform agent.finalize_runs(null, array[agent.make_end(
        v_row, 'error', json_build_object('error', p_error, 'message', p_message))]);
    return query select v_row.run_id, v_row.thread_id, 'error';
end
$function$;

comment on function agent.fail_run(bigint, uuid, uuid, integer, text, text) is
    'Ends a leased run in error, also a cancelled one.';
