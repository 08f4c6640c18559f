-- SPDX-License-Identifier: Apache-2.0
-- Chooses the runs that a worker claims, and in addition the suspects. The parameters are those of agent.claim_runs.
-- Pools take turns, run by run; the runs of one are chosen in the order in which they became ready.
-- Returns: the row ids (ctid) of their queue rows, which are valid until the end of the transaction.
-- Locks:   these rows, and further ready ones up to each pool's limit for a graph; skips locked ones.
create or replace function agent.lock_ready_runs(
    p_deployment_ids uuid[],
    p_graph_ids text[],
    p_min_ready_seqs bigint[],
    p_pools integer[],
    p_limits integer[],
    p_suspects integer[],
    p_limit integer
) returns tid[]
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set enable_hashjoin = off set enable_mergejoin = off set enable_sort = off
set plan_cache_mode = force_generic_plan
as $function$
begin
    return array(
        select t.ctid
          from (
                select r.ctid, r.ready_seq, g.pool,
                       row_number() over (partition by g.pool order by r.ready_seq) as turn
                  from unnest(p_deployment_ids, p_graph_ids, p_min_ready_seqs, p_pools)
                       as g (deployment_id, graph_id, min_ready_seq, pool)
                 cross join lateral (
                        select c.ctid, c.ready_seq
                          from agent.run_queue c
                         where c.state = 'ready'
                           and c.not_before is null
                           and c.max_shared is null
                           and c.deployment_id = g.deployment_id
                           and c.graph_id = g.graph_id
                           and c.ready_seq > g.min_ready_seq
                         order by c.ready_seq
                         limit greatest(p_limits[g.pool], 0)
                           for no key update skip locked
                       ) r
               ) t
         where t.turn <= p_limits[t.pool]
         order by t.turn, t.ready_seq
         limit p_limit)
     -- Likewise for suspects.
     || array(
        select t.ctid
          from (
                select r.ctid, r.ready_seq, g.pool,
                       row_number() over (partition by g.pool order by r.ready_seq) as turn
                  from unnest(p_deployment_ids, p_graph_ids, p_min_ready_seqs, p_pools)
                       as g (deployment_id, graph_id, min_ready_seq, pool)
                 cross join lateral (
                        select c.ctid, c.ready_seq
                          from agent.run_queue c
                         where c.state = 'ready'
                           and c.not_before is null
                           and c.max_shared is not null
                           and c.deployment_id = g.deployment_id
                           and c.graph_id = g.graph_id
                           and c.ready_seq > g.min_ready_seq
                         order by c.ready_seq
                         limit greatest(p_suspects[g.pool], 0)
                           for no key update skip locked
                       ) r
               ) t
         where t.turn <= p_suspects[t.pool]
         order by t.turn, t.ready_seq
         limit p_limit);
end
$function$;

comment on function agent.lock_ready_runs(
    uuid[], text[], bigint[], integer[], integer[], integer[], integer) is
    'Chooses and locks the runs of a claim.';
