-- SPDX-License-Identifier: Apache-2.0
-- POST /runs/cancel with the ids of runs of one thread, newest first, up to agent.deletion_bytes() of requests, of
-- which a rollback counts each with 100,000 more. Final runs keep their status. p_action: interrupt or rollback.
-- Returns: ok with the number of ids, counted from the first, that were processed: call again with the others, in
--          another transaction; changed: the thread and the runs that this call ended; run_not_found when none of the
--          runs exists.
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
    v_run_ids uuid[] := '{}';
    v_row     record;
    v_left    bigint := agent.deletion_bytes();
begin
    for v_row in
        select r.run_id, k.position, q.bytes
          from unnest(p_run_ids) with ordinality k (run_id, position)
         cross join lateral (
                select x.run_id
                  from agent.find_run(p_deployment_id, p_thread_id, k.run_id) x
                 limit 1
               ) r
          left join lateral (
                select case when p_action = 'rollback' then 100000 else 0 end + coalesce(x.request_bytes, 0) as bytes
                  from agent.run_queue x
                 where x.run_id = k.run_id
                   and x.deployment_id is not distinct from p_deployment_id
                 limit 1
               ) q on true
         order by k.position
    loop
        v_run_ids := v_run_ids || v_row.run_id;
        v_left := v_left - coalesce(v_row.bytes, 0);
        exit when v_left <= 0;
    end loop;
    if v_run_ids = '{}' then
        code := 'run_not_found';
        return;
    end if;
    code := 'ok';
    body := case when v_left <= 0 then v_row.position else cardinality(p_run_ids) end;
    v_run_ids := array(select distinct k.run_id from unnest(v_run_ids) k (run_id));
    changed := agent.apply_cancels(p_deployment_id, array[p_thread_id], v_run_ids, p_action);
end
$function$;

comment on function agent.cancel_runs(uuid, uuid, uuid[], text) is
    'POST /runs/cancel with the ids of runs.';
