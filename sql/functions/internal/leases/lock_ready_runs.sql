-- SPDX-License-Identifier: Apache-2.0
-- Chooses the runs that a worker claims, and in addition the suspects. The parameters are those of agent.claim_runs.
-- p_free: how many more runs the account of each pool may execute, as agent.find_free_runs returns it. It does not
-- hold suspects back, which have executed before.
-- Accounts take turns, run by run, then the deployments of one, the one that executes the fewest first, then its
-- pools; the runs of one pool are chosen in the order in which they became ready.
-- Returns: the row ids (ctid) of their queue rows, which are valid until the end of the transaction.
-- Locks:   these rows, and further ready ones up to each pool's limit for a graph, none of an account without a free
--          run; skips locked ones.
create or replace function agent.lock_ready_runs(
    p_deployment_ids uuid[],
    p_graph_ids text[],
    p_min_ready_seqs bigint[],
    p_pools integer[],
    p_limits integer[],
    p_suspects integer[],
    p_limit integer,
    p_accounts uuid[],
    p_running integer[],
    p_free bigint[]
) returns tid[]
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set enable_hashjoin = off set enable_mergejoin = off set enable_sort = off
set plan_cache_mode = force_generic_plan
as $function$
declare
    v_rows tid[];
begin
    -- Most claims are for one pool, which has all turns.
    if cardinality(p_limits) = 1 then
        v_rows := array(
            select r.ctid
              from unnest(p_deployment_ids, p_graph_ids, p_min_ready_seqs) as g (deployment_id, graph_id, min_ready_seq)
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
                     limit greatest(least(p_limits[1], p_free[1]), 0)
                       for no key update skip locked
                   ) r
             order by r.ready_seq
             limit greatest(least(p_limits[1], p_free[1], p_limit), 0));
    else
        v_rows := array(
            select a.ctid
              from (
                    select d.ctid, d.ready_seq, d.pool,
                           row_number() over (partition by d.account_id order by d.deployment_turn, d.ready_seq) as turn
                      from (
                            select t.ctid, t.ready_seq, t.pool, p_accounts[t.pool] as account_id,
                                   coalesce(p_running[t.pool], 0)
                                   + row_number() over (partition by t.deployment_id order by t.turn, t.ready_seq)
                                   as deployment_turn
                              from (
                                    select r.ctid, r.ready_seq, g.pool, g.deployment_id,
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
                                             limit greatest(least(p_limits[g.pool], p_free[g.pool]), 0)
                                               for no key update skip locked
                                           ) r
                                   ) t
                             where t.turn <= p_limits[t.pool]
                           ) d
                   ) a
             where a.turn <= p_free[a.pool] is not false
             order by a.turn, a.ready_seq
             limit p_limit);
    end if;
    -- Suspects: their pools take turns.
    return v_rows || array(
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
    uuid[], text[], bigint[], integer[], integer[], integer[], integer, uuid[], integer[], bigint[]) is
    'Chooses and locks the runs of a claim.';
