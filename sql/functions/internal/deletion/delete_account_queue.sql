-- SPDX-License-Identifier: Apache-2.0
-- Deletes up to 200 unfinished runs and calls of deployments from the queue, those first that workers execute: their
-- workers find no row, are fenced and stop them.
-- Returns: number of rows; null: some are left, and others hold their threads.
-- Locks:   the threads in the order of their keys, skipping locked ones, then the queue rows.
create or replace function agent.delete_account_queue(p_deployment_ids uuid[]) returns integer
language plpgsql volatile security invoker
set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off set enable_bitmapscan = off
set enable_hashjoin = off set enable_mergejoin = off set plan_cache_mode = force_generic_plan
as $function$
declare
    v_runs  uuid[];
    v_held  text[];
    v_rows  tid[];
    v_count integer;
begin
    -- Each part has a partial index.
    v_runs := array(
        select u.run_id
          from (
                select q.run_id
                  from agent.run_queue q
                 where q.worker_id is not null
                   and q.deployment_id = any (p_deployment_ids)
                union all
                select x.run_id
                  from unnest(p_deployment_ids) d (id)
                 cross join lateral (
                        (select q.run_id from agent.run_queue q
                          where q.deployment_id = d.id and agent.is_claimable(q, false)
                          limit 200)
                        union all
                        (select q.run_id from agent.run_queue q
                          where q.deployment_id = d.id and agent.is_claimable(q, true)
                          limit 200)
                        union all
                        (select q.run_id from agent.run_queue q
                          where q.deployment_id = d.id and q.state = 'blocked'
                          limit 200)
                       ) x
                union all
                select q.run_id
                  from agent.run_queue q
                 where q.state = 'ready'
                   and q.not_before is not null
                   and q.deployment_id = any (p_deployment_ids)
               ) u
         limit 200);
    v_held := array(
        select concat(k.deployment_id, k.thread_id)
          from (
                select distinct q.deployment_id, q.thread_id
                  from agent.run_queue q
                 where q.run_id = any (v_runs)
                   and q.deployment_id = any (p_deployment_ids)
                 order by q.deployment_id, q.thread_id
                offset 0
               ) k
         cross join lateral (
                select from agent.threads t
                 where t.deployment_id = k.deployment_id
                   and t.thread_id = k.thread_id
                   for update skip locked
               ) l);
    -- A call may have no thread.
    v_rows := array(
        select q.ctid
          from agent.run_queue q
         where q.run_id = any (v_runs)
           and q.deployment_id = any (p_deployment_ids)
           and (concat(q.deployment_id, q.thread_id) = any (v_held)
                or not exists (
                    select from agent.threads t
                     where t.deployment_id = q.deployment_id
                       and t.thread_id = q.thread_id))
         order by q.run_id
           for update skip locked);
    delete from agent.run_queue q
     where q.ctid = any (v_rows);
    get diagnostics v_count = row_count;
    return case when v_count = 0 and cardinality(v_runs) > 0 then null else v_count end;
end
$function$;

comment on function agent.delete_account_queue(uuid[]) is 'Deletes unfinished runs of an account from the queue.';
