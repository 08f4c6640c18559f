-- SPDX-License-Identifier: Apache-2.0
-- Releases runs whose worker or runner is lost. A requested cancel is applied first: a cancelled run is
-- never retried. A run without attempts left ends in error, as does an update of which a part was saved; a call that
-- was saved has succeeded; the others become ready. p_counted, p_reason and p_max_shared: as in agent.release_runs.
-- p_error: the word for a run without attempts left.
-- Returns: one row per run: requeued, error, success, interrupted, rolled_back; gone, with thread_id null, when the
--          worker no longer holds the lease.
-- Locks:   the threads, then the queue rows, then the records.
create or replace function agent.release_leased_runs(
    p_worker_id bigint,
    p_runs agent.leased_run[],
    p_counted boolean,
    p_error text,
    p_reason text,
    p_max_shared smallint
) returns table (run_id uuid, thread_id uuid, outcome text)
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_hashjoin = off
set enable_mergejoin = off
set plan_cache_mode = force_generic_plan
as $function$
declare
    v_rows agent.run_queue[];
    v_row  agent.run_queue;
    v_run  agent.leased_run;
begin
    perform agent.lock_leases(p_worker_id, p_runs);
    select array_agg(q order by q.deployment_id, q.run_id) into v_rows
      from unnest(p_runs) k
     cross join lateral agent.find_lease(p_worker_id, k.deployment_id, k.run_id, k.epoch) q;

    foreach v_row in array coalesce(v_rows, '{}')
    loop
        run_id := v_row.run_id;
        thread_id := v_row.thread_id;
        if v_row.cancel = 'rollback' then
            perform agent.rollback_run(null, v_row, agent.deletion_bytes() / cardinality(v_rows));
            outcome := 'rolled_back';
        elsif v_row.cancel = 'interrupt' then
            perform agent.finalize_runs(null, array[agent.make_end(v_row, 'interrupted')]);
            outcome := 'interrupted';
        elsif v_row.op is not null and agent.is_saved_update(v_row) then
            -- A second attempt would write it twice.
            perform agent.finalize_runs(null, array[agent.make_end(v_row, 'success')]);
            outcome := 'success';
        elsif p_counted and v_row.attempts >= v_row.max_attempts
           or v_row.op is not null and v_row.run_id = (
            select t.head_run_id
              from agent.threads t
             where t.deployment_id = v_row.deployment_id
               and t.thread_id = v_row.thread_id)
        then
            perform agent.finalize_runs(null, array[agent.make_end(
                v_row, 'error',
                json_build_object(
                    'error', p_error,
                    'message', format(
                        'The run was given up after %s attempts; at the last one %s.',
                        v_row.attempts, p_reason)))]);
            outcome := 'error';
        else
            perform agent.requeue_run(v_row, p_counted, p_max_shared);
            outcome := 'requeued';
        end if;
        return next;
    end loop;

    foreach v_run in array coalesce(p_runs, '{}')
    loop
        if not exists (
            select from unnest(v_rows) r
             where r.deployment_id = v_run.deployment_id
               and r.run_id = v_run.run_id
        ) then
            run_id := v_run.run_id;
            thread_id := null;
            outcome := 'gone';
            return next;
        end if;
    end loop;
end
$function$;

comment on function agent.release_leased_runs(bigint, agent.leased_run[], boolean, text, text, smallint) is
    'Releases leased runs: ready again, or final.';
