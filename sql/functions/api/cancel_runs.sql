-- SPDX-License-Identifier: Apache-2.0
-- POST /runs/cancel with the ids of runs of one thread. Final runs keep their status. p_action: interrupt or
-- rollback.
-- Returns: ok, changed: the thread and the runs that this call ended; run_not_found when none of the runs
--          exists.
-- Bound:   ids of p_run_ids, of which the server accepts 1,000.
--          Held by `#define AGENT_MANY_RUNS 1000` in mod_agent/model/schema.h.
-- Locks:   the thread, then the queue rows, then the records.
create or replace function agent.cancel_runs(
    p_deployment_id uuid,
    p_thread_id uuid,
    p_run_ids uuid[],
    p_action text,
    out code text,
    out body text,
    out changed text
)
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_hashjoin = off
set enable_mergejoin = off set plan_cache_mode = force_generic_plan
as $function$
declare
    v_run_ids uuid[];
begin
    select array_agg(distinct r.run_id) into v_run_ids
      from unnest(p_run_ids) k (run_id)
     cross join lateral (
            select x.run_id
              from agent.find_run(p_deployment_id, p_thread_id, k.run_id) x
             limit 1
           ) r;
    if v_run_ids is null then
        code := 'run_not_found';
        return;
    end if;
    code := 'ok';
    changed := agent.apply_cancels(p_deployment_id, array[p_thread_id], v_run_ids, p_action);
end
$function$;

comment on function agent.cancel_runs(uuid, uuid, uuid[], text) is
    'POST /runs/cancel with the ids of runs.';
