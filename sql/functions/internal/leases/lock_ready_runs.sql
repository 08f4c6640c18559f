-- SPDX-License-Identifier: Apache-2.0
-- Chooses the runs that a worker claims, and in addition the quarantined runs. The parameters are those of
-- agent.claim_runs. p_free, p_held: how many more runs the account of each pool may execute, and why none, as of
-- agent.find_free_runs. Of quarantined runs, which have executed before, it holds back those of accounts that are held
-- only. Of full accounts it chooses calls that describe graphs (agent.lock_descriptions).
-- Runs of closed accounts end (agent.end_closed_runs). Accounts take turns (agent.share_ready_runs). The shares are
-- found without locks, so that a claim of many pools locks no more rows than it takes; a row that another claim holds
-- is skipped for the next one of the graph.
-- Returns: the row ids (ctid) of their queue rows, which are valid until the end of the transaction.
-- Locks:   these rows, and those of agent.end_closed_runs; skips locked ones.
create or replace function agent.lock_ready_runs(
    p_deployment_ids uuid[],
    p_graph_ids text[],
    p_min_ready_seqs bigint[],
    p_pools integer[],
    p_limits integer[],
    p_quarantined integer[],
    p_limit integer,
    p_accounts uuid[],
    p_running integer[],
    p_free bigint[],
    p_held text[]
) returns tid[]
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set enable_hashjoin = off set enable_mergejoin = off set enable_sort = off
set plan_cache_mode = force_generic_plan
as $function$
declare
    -- Of the first pool, and for a claim of one pool only: how many ordinary and quarantined runs it gets.
    v_runs        bigint := greatest(least(p_limits[1], p_free[1], p_limit), 0);
    v_retried     bigint := greatest(least(p_quarantined[1], p_limit, case when p_held[1] is not null then 0 end), 0);
    v_quarantined bigint[];
    v_calls       tid[] := '{}';
begin
    if 'closed' = any (p_held) then
        perform agent.end_closed_runs(p_deployment_ids, p_pools, p_held);
    end if;
    if 'full' = any (p_held) then
        v_calls := agent.lock_descriptions(p_deployment_ids, p_graph_ids, p_pools, p_limits, p_held);
    end if;
    -- Most claims are for one pool, which has all turns.
    if cardinality(p_limits) = 1 then
        return array(
            select r.ctid
              from unnest(p_deployment_ids, p_graph_ids, p_min_ready_seqs) as g (deployment_id, graph_id, min_ready_seq)
             cross join lateral (
                    select c.ctid, c.ready_seq
                      from agent.run_queue c
                     where agent.is_claimable(c, false)
                       and c.deployment_id = g.deployment_id
                       and c.graph_id = g.graph_id
                       and c.ready_seq > g.min_ready_seq
                     order by c.ready_seq
                     limit v_runs
                       for no key update skip locked
                   ) r
             order by r.ready_seq
             limit v_runs)
            || array(
            select r.ctid
              from unnest(p_deployment_ids, p_graph_ids, p_min_ready_seqs) as g (deployment_id, graph_id, min_ready_seq)
             cross join lateral (
                    select c.ctid, c.ready_seq
                      from agent.run_queue c
                     where agent.is_claimable(c, true)
                       and c.deployment_id = g.deployment_id
                       and c.graph_id = g.graph_id
                       and c.ready_seq > g.min_ready_seq
                     order by c.ready_seq
                     limit v_retried
                       for no key update skip locked
                   ) r
             order by r.ready_seq
             limit v_retried)
            || v_calls;
    end if;
    v_quarantined := array(
        select case when h.reason is not null then 0 end
          from unnest(p_held) with ordinality h (reason, pos)
         order by h.pos);
    return array(
        select r.ctid
          from agent.share_ready_runs(
                   p_deployment_ids, p_graph_ids, p_min_ready_seqs, p_pools, p_limits, p_limit, p_accounts, p_running,
                   p_free, false) s
         cross join lateral (
                select c.ctid
                  from agent.run_queue c
                 where agent.is_claimable(c, false)
                   and c.deployment_id = p_deployment_ids[s.graph]
                   and c.graph_id = p_graph_ids[s.graph]
                   and c.ready_seq > p_min_ready_seqs[s.graph]
                 order by c.ready_seq
                 limit s.runs
                   for no key update skip locked
               ) r)
        || array(
        select r.ctid
          from agent.share_ready_runs(
                   p_deployment_ids, p_graph_ids, p_min_ready_seqs, p_pools, p_quarantined, p_limit, p_accounts,
                   p_running, v_quarantined, true) s
         cross join lateral (
                select c.ctid
                  from agent.run_queue c
                 where agent.is_claimable(c, true)
                   and c.deployment_id = p_deployment_ids[s.graph]
                   and c.graph_id = p_graph_ids[s.graph]
                   and c.ready_seq > p_min_ready_seqs[s.graph]
                 order by c.ready_seq
                 limit s.runs
                   for no key update skip locked
               ) r)
        || v_calls;
end
$function$;

comment on function agent.lock_ready_runs(
    uuid[], text[], bigint[], integer[], integer[], integer[], integer, uuid[], integer[], bigint[], text[]) is
    'Chooses and locks the runs of a claim.';
