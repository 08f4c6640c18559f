-- SPDX-License-Identifier: Apache-2.0
-- POST /runs/cancel with a status: up to 100 unfinished runs of the deployment, with rollback 40, or
-- agent.deletion_bytes() of requests, newest first, so that the end of a run does not promote one that is also to be
-- cancelled. The caller continues with the returned id as p_before, in another transaction. p_status: pending = not
-- leased, running = leased, all = both. p_action: interrupt or rollback.
-- Returns: ok with the id of the last run read, changed: threads and runs that this call ended; run_not_found
--          when no run is left before p_before.
-- Bound:   ids of 100 runs and their threads. Held by `limit 100`.
-- Locks:   the threads, then the queue rows, each in the order of their keys, then the records.
create or replace function agent.cancel_runs_by_status(
    p_deployment_id uuid,
    p_status text,
    p_action text,
    p_before uuid,
    out code text,
    out body text,
    out changed text
)
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set enable_sort = off set plan_cache_mode = force_generic_plan
as $function$
declare
    v_thread_ids uuid[] := '{}';
    v_run_ids    uuid[] := '{}';
    v_row        record;
    v_left       bigint := agent.deletion_bytes();
begin
    for v_row in
        select q.thread_id, q.run_id, q.request_bytes
          from agent.run_queue q
         where q.run_id < p_before
           and q.deployment_id is not distinct from p_deployment_id
           and q.op is null
           and (p_status = 'all' or (p_status = 'running') = (q.state = 'leased'))
         order by q.run_id desc
         limit 100
    loop
        v_thread_ids := v_thread_ids || v_row.thread_id;
        v_run_ids := v_run_ids || v_row.run_id;
        v_left := v_left - case when p_action = 'rollback' then 100000 else 0 end - coalesce(v_row.request_bytes, 0);
        exit when v_left <= 0;
    end loop;
    if v_run_ids = '{}' then
        code := 'run_not_found';
        return;
    end if;
    code := 'ok';
    body := v_run_ids[cardinality(v_run_ids)];
    changed := agent.apply_cancels(p_deployment_id, v_thread_ids, v_run_ids, p_action);
end
$function$;

comment on function agent.cancel_runs_by_status(uuid, text, text, uuid) is
    'POST /runs/cancel with a status.';
