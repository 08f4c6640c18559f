-- SPDX-License-Identifier: Apache-2.0
-- Marks a worker dead, makes the webhooks that it was delivering due and releases up to p_limit of its runs,
-- in the order of their ids. A large backlog is thus many short transactions: call again while p_limit runs
-- are returned. When a run takes too long, agent.fail_run ends it. p_counted false: the attempts do not
-- count (drain).
-- Returns: the released runs, as agent.release_leased_runs.
-- Locks:   the worker, then rows of the outbox, then threads, queue rows and records of its runs.
create or replace function agent.mark_worker_dead(
    p_worker_id bigint,
    p_counted boolean,
    p_limit integer
) returns table (run_id uuid, thread_id uuid, outcome text)
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $function$
declare
    v_runs agent.leased_run[];
    v_node text;
begin
    update agent.workers w
       set state = 'dead', dead_at = coalesce(w.dead_at, agent.now())
     where w.worker_id = p_worker_id
    returning w.node_name into v_node;
    perform agent.release_webhooks(p_worker_id);

    select array_agg(agent.make_leased_run(x.deployment_id, x.run_id, x.epoch)) into v_runs
      from (
            select l.*
              from (
                    -- By the index of leases alone: ordered by another index it could become a scan.
                    select q.deployment_id, q.run_id, q.epoch
                      from agent.run_queue q
                     where q.worker_id = p_worker_id
                    offset 0
                   ) l
             order by l.run_id
             limit p_limit
           ) x;
    return query
        select l.run_id, l.thread_id, l.outcome
          from agent.release_leased_runs(
                   p_worker_id, v_runs, p_counted, 'WorkerLostError',
                   format('the worker on host %s was lost', coalesce(v_node, 'unknown')), null) l;
end
$function$;

comment on function agent.mark_worker_dead(bigint, boolean, integer) is
    'Marks a worker dead and releases some of its runs.';
