-- SPDX-License-Identifier: Apache-2.0
-- Saves, in one transaction, events, checkpoints, records of the graphs' libraries, reports about tasks and ends of the
-- runs of a worker.
-- Items of a run whose lease the worker no longer holds are skipped. After an unclear commit the whole batch
-- can be repeated: each row has a key. A value that does not fit its type (class 22) fails the whole batch,
-- which is then saved run by run.
-- p_items in order of arrival, each the runner's message followed by the supervisor's members, which override
-- equal ones: {..., "d": deployment_id, "r": run_id, "e": epoch, "s": seq or null, "f": whether the
-- worker made the item, an end, itself}.
-- Returns: one row per run of the batch: saved or fenced; finished: whether the run is final; promoted: whether a run
--          that waited for any of the batch is ready now, the same in each row.
-- Locks:   the threads of runs with more than events, then the queue rows, then the records.
create or replace function agent.save_batch(p_worker_id bigint, p_items json)
returns table (run_id uuid, outcome text, finished boolean, promoted boolean)
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_hashjoin = off
set enable_mergejoin = off set plan_cache_mode = force_generic_plan
as $function$
#variable_conflict use_column
declare
    v_runs        agent.leased_run[];
    v_events      agent.batch_event[];
    v_checkpoints agent.batch_checkpoint[];
    v_records     agent.batch_record[];
    v_tasks       agent.batch_task[];
    v_leases      agent.run_queue[];
    v_only_events boolean;
    v_promoted    boolean := false;
begin
    select x.runs, x.events, x.checkpoints, x.records, x.tasks
      into v_runs, v_events, v_checkpoints, v_records, v_tasks
      from agent.parse_batch(p_items) x;

    v_only_events := not exists (
        select from unnest(v_runs) k where k.locks_thread);
    if not v_only_events then
        perform agent.lock_threads(p_worker_id, v_runs);
    end if;
    v_leases := agent.fence_leases(p_worker_id, v_runs);

    if v_leases is not null and v_events is not null then
        perform agent.save_events(v_leases, v_events);
    end if;
    if v_leases is not null and v_tasks is not null then
        perform agent.save_tasks(v_leases, v_tasks);
    end if;

    -- The usual batch: no run ended, all leases are held.
    if v_only_events and cardinality(v_leases) = cardinality(v_runs) then
        return query
            select k.run_id, 'saved', false, false
              from unnest(v_runs) k;
        return;
    end if;

    if v_records is not null then
        perform agent.save_records(p_worker_id, v_records);
    end if;
    if v_checkpoints is not null then
        perform agent.save_checkpoints(p_worker_id, v_checkpoints);
    end if;
    if not v_only_events then
        v_promoted := agent.apply_ends(p_worker_id, v_runs);
    end if;

    -- All leases were held: no run needs to be looked up to tell how it ended.
    if cardinality(v_leases) = cardinality(v_runs) then
        return query
            select k.run_id, 'saved', k.status is not null, v_promoted
              from unnest(v_runs) k;
        return;
    end if;

    return query
        select k.run_id,
               case when q.run_id is null and u.run_id is null and c.call_id is null then 'fenced' else 'saved' end,
               u.run_id is not null or c.call_id is not null,
               v_promoted
          from unnest(v_runs) k
          left join lateral agent.find_lease(p_worker_id, k.deployment_id, k.run_id, k.epoch) q on true
          left join lateral (
                select e.run_id
                  from agent.usage_events e
                 where q.run_id is null
                   and e.deployment_id = k.deployment_id
                   and e.run_id = k.run_id
                   and e.epoch = k.epoch
                   and e.worker_id = p_worker_id
                 limit 1
               ) u on true
          left join lateral (
                select x.call_id
                  from agent.calls x
                 where q.run_id is null
                   and u.run_id is null
                   and x.call_id = k.run_id
                   and x.deployment_id is not distinct from k.deployment_id
                   and x.epoch = k.epoch
                   and x.worker_id = p_worker_id
                 limit 1
               ) c on true;
end
$function$;

comment on function agent.save_batch(bigint, json) is
    'Saves events, checkpoints, tasks and ends of a worker''s runs.';
