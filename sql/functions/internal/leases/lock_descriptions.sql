-- SPDX-License-Identifier: Apache-2.0
-- Chooses, for a claim, calls that describe graphs of full accounts (p_held), whose runs it holds back: they
-- store nothing, and requests wait for them. The parameters are those of agent.lock_ready_runs.
-- Returns: the row ids (ctid) of their queue rows, which are valid until the end of the transaction.
-- Locks:   these rows; skips locked ones.
create or replace function agent.lock_descriptions(
    p_deployment_ids uuid[],
    p_graph_ids text[],
    p_pools integer[],
    p_limits integer[],
    p_held text[]
) returns tid[]
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set plan_cache_mode = force_generic_plan
as $function$
begin
    return array(
        select r.ctid
          from unnest(p_deployment_ids, p_graph_ids, p_pools) g (deployment_id, graph_id, pool)
         cross join lateral (
                -- The table has the calls of requests that wait, and those that have ended a short time ago.
                select q.ctid
                  from agent.calls c
                  join agent.run_queue q on q.deployment_id = c.deployment_id and q.run_id = c.call_id
                 where p_held[g.pool] = 'full'
                   and c.deployment_id = g.deployment_id
                   and c.graph_id = g.graph_id
                   and c.op = 'describe'
                   and c.finished_at is null
                   and agent.is_claimable(q, false)
                 limit greatest(p_limits[g.pool], 0)
                   for no key update of q skip locked
               ) r);
end
$function$;

comment on function agent.lock_descriptions(uuid[], text[], integer[], integer[], text[]) is
    'Chooses calls that describe graphs of full accounts.';
