-- SPDX-License-Identifier: Apache-2.0
-- Leases ready runs to a worker, for the free slots of its pools. A pool executes the graphs of one program of a
-- deployment: none gets runs for the slots of another. Accounts take turns, run by run, then the deployments of one,
-- then their pools; the runs of a pool are leased in the order in which they became ready. Runs of an account that
-- executes as many as its limit (running_runs) stay ready. Quarantined runs (max_shared) are counted apart, so that
-- neither kind blocks the other.
-- p_deployment_ids, p_graph_ids, p_min_ready_seqs, p_pools: one element each per graph that the worker executes.
-- Only runs whose ready_seq is greater than the graph's: a worker passes a number well below the highest that it has
-- claimed, so that the scan does not begin at dead index entries, and 0 once a second, since rows below may have been
-- locked, held back or quarantined. p_pools: the number of the pool.
-- p_limits, p_quarantined: one element each per pool, beginning with pool number 1: the free slots for runs, and those
-- for quarantined runs. Both are -1 for a pool without a runner: none of its runs is leased, but a row reports that it
-- has a ready one.
-- p_accounts, p_running: likewise, the account of a pool, and the runs that its runners execute.
-- p_limit: the maximum number of leased runs, and the same number of quarantined runs in addition.
-- p_max_bytes: total length of the start messages that are composed here, while rows are locked, shortest
-- first; agent.compose_starts composes the others.
-- Returns: one row per leased run. A row with deployment_id and graph_id only: the graph has a ready run, and its
--          pool has no runner. No rows for a worker that is not live.
--          start: the start message; null when agent.compose_starts is to compose it. start_bytes: its approximate
--          length. state_bytes: the length of the state, which the runner reads. op: the operation of a call, whose
--          message agent.compose_call composes; null for a run. last_event_seq: the number of the last event, from
--          which numbering continues; -1 for none. quarantines_passed: how often the run has passed quarantine
--          (agent.requeue_run); each time its next quarantine takes longer.
-- Locks:   the worker (share, so that agent.mark_worker_dead sees the claim), then queue rows, skipping locked
--          ones, and records of runs that have waited past midnight. A claim commits to the local disk: if a crash
--          undid it, crashes that the output of the run causes would be counted from the start. A standby may not
--          have it.
create or replace function agent.claim_runs(
    p_worker_id bigint,
    p_deployment_ids uuid[],
    p_graph_ids text[],
    p_min_ready_seqs bigint[],
    p_pools integer[],
    p_limits integer[],
    p_quarantined integer[],
    p_limit integer,
    p_max_bytes bigint,
    p_accounts uuid[] default '{}',
    p_running integer[] default '{}'
) returns table (
    deployment_id uuid,
    run_id uuid,
    thread_id uuid,
    epoch integer,
    attempt integer,
    graph_id text,
    ready_seq bigint,
    last_event_seq bigint,
    max_shared smallint,
    quarantines_passed smallint,
    start_bytes bigint,
    state_bytes bigint,
    op text,
    start text
)
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set enable_hashjoin = off set enable_mergejoin = off set enable_sort = off
set plan_cache_mode = force_generic_plan
as $function$
#variable_conflict use_column
declare
    v_now   timestamptz := agent.now();
    v_today date := (v_now at time zone 'UTC')::date;
    v_due   boolean;
    v_free  bigint[];
    v_held  text[];
    v_rows  tid[];
begin
    v_due := exists (
        select from agent.run_queue d where d.state = 'ready' and d.not_before is not null and d.not_before <= v_now);
    -- Most calls of an idle worker end here, without a lock or a write. One test after the other, since most calls of
    -- a busy one need the first one only.
    if not v_due and not exists (
            select from agent.find_ready_graphs(
                p_deployment_ids, p_graph_ids, p_min_ready_seqs, p_pools, p_limits, false))
    then
        if not exists (
            select from agent.find_ready_graphs(
                p_deployment_ids, p_graph_ids, p_min_ready_seqs, p_pools, p_quarantined, true))
        then
            return;
        end if;
    end if;

    perform from agent.workers w where w.worker_id = p_worker_id and w.state = 'live' for share;
    if not found then
        return;
    end if;

    if v_due then
        perform agent.promote_delayed_runs(v_now);
    end if;
    select f.free, f.held into v_free, v_held from agent.find_free_runs(p_accounts) f;
    v_rows := agent.lock_ready_runs(
        p_deployment_ids, p_graph_ids, p_min_ready_seqs, p_pools, p_limits, p_quarantined, p_limit, p_accounts,
        p_running, v_free, v_held);
    perform set_config('synchronous_commit', case when cardinality(v_rows) > 0 then 'local' else 'off' end, true);
    if exists (select from agent.account_counts) then
        perform agent.count_started_runs(v_rows);
    end if;
    if exists (select from agent.run_queue q where q.ctid = any (v_rows) and q.epoch = 0 and q.events_bucket <> v_today)
    then
        perform agent.move_events_buckets(v_rows, v_today);
    end if;

    -- "= any (...)" and ctid, never a join: no statistics can turn this into a scan.
    return query
        with claimed as (
            update agent.run_queue q
               set state = 'leased',
                   worker_id = p_worker_id,
                   epoch = q.epoch + 1, batch_no = 0,
                   attempts = q.attempts + 1,
                   started_at = coalesce(q.started_at, v_now),
                   -- The partition of the day of its creation may be dropped.
                   events_bucket = case when q.epoch = 0 then v_today else q.events_bucket end
             where q.ctid = any (v_rows)
            returning q.*
        ),
        measured as (
            select c.*, sum(c.bytes) over (order by c.bytes, c.run_id) as together
              from (
                    -- The length of the request and, estimated, of all else in the message. A request that was not
                    -- measured counts as 8 MiB, the longest line of the protocol.
                    select q.*, 1280 + coalesce(q.request_bytes, 8388608)::bigint as bytes
                      from claimed q
                   ) c
        )
        select q.deployment_id, q.run_id, q.thread_id, q.epoch, q.attempts::integer, q.graph_id,
               q.ready_seq,
               case
                   when q.epoch = 1 then -1
                   else agent.last_event_seq(q.deployment_id, q.events_bucket, q.run_id)
               end,
               q.max_shared::smallint, q.quarantines_passed, q.bytes,
               case
                   when q.together <= p_max_bytes then coalesce(s.state_bytes, 0)
                   else agent.measure_state(q.deployment_id, q.run_id, q.thread_id, q.op)
               end,
               q.op::text, s.start
          from measured q
          left join lateral (
                select m.start, m.state_bytes
                  from agent.compose_message(
                         q.deployment_id, q.run_id, q.thread_id, q.graph_id, q.epoch, q.attempts, q.op) m
                 where q.together <= p_max_bytes
                -- Not flattened: a join would compose the message before it tests the condition.
                offset 0
               ) s on true;

    if 0 > any (p_limits) then
        return query
            select g.deployment_id, null::uuid, null::uuid, null::integer, null::integer, g.graph_id,
                   null::bigint, null::bigint, null::smallint, null::smallint, null::bigint, null::bigint,
                   null::text, null::text
              from agent.find_idle_graphs(
                     p_deployment_ids, p_graph_ids, p_min_ready_seqs, p_pools, p_limits, v_free) g;
    end if;
end
$function$;

comment on function agent.claim_runs(
    bigint, uuid[], text[], bigint[], integer[], integer[], integer[], integer, bigint, uuid[], integer[]) is
    'Leases ready runs to a worker.';
