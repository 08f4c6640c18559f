-- SPDX-License-Identifier: Apache-2.0
-- The deployments that have webhooks due at p_now, for agent.claim_webhooks: those of the longest due ones, and up to
-- 100 in a ring that begins at a random one.
-- Returns: a row per deployment. turns: how many there are; turns_left: from turns down to 1, the one that holds the
--          fewest slots of the worker first, equal ones in random order. unfilled, unfilled_bytes: what it does not
--          hold of what is guaranteed to it; all_unfilled, all_unfilled_bytes: the sums over all p_deployments, due or
--          not.
-- Locks:   none.
create or replace function agent.webhook_turns(
    p_worker_id bigint,
    p_deployments uuid[],
    p_guaranteed integer,
    p_guaranteed_bytes bigint,
    p_now timestamptz
) returns table (
    deployment_id uuid,
    turns bigint,
    turns_left bigint,
    unfilled bigint,
    unfilled_bytes bigint,
    all_unfilled bigint,
    all_unfilled_bytes bigint
)
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set enable_hashjoin = off set enable_mergejoin = off set enable_sort = off set enable_incremental_sort = off
set plan_cache_mode = force_generic_plan
as $function$
#variable_conflict use_column
declare
    c_deployments constant integer := 100;
begin
    return query
        with recursive ring (deployment_id, first, number) as (
            select f.deployment_id, f.deployment_id, 1
              from agent.next_webhook_deployment(gen_random_uuid()) f (deployment_id)
             where f.deployment_id is not null
            union all
            select n.deployment_id, r.first, r.number + 1
              from ring r
             cross join lateral agent.next_webhook_deployment(r.deployment_id) n (deployment_id)
             where n.deployment_id <> r.first
               and r.number < c_deployments
        ), due (deployment_id) as (
            -- As a condition of the lookup, due_at would not end the index scan at the first row that is not due: it
            -- is tested outside of it.
            select r.deployment_id
              from ring r
             cross join lateral (
                    select o.due_at
                      from agent.webhook_outbox o
                     where o.dead_at is null
                       and (o.deployment_id, o.due_at) >= (r.deployment_id, '-infinity')
                     order by o.deployment_id, o.due_at
                     limit 1
                   ) d
             where d.due_at <= p_now
            union
            select l.deployment_id
              from (
                    select o.deployment_id
                      from agent.webhook_outbox o
                     where o.dead_at is null
                       and o.due_at <= p_now
                     order by o.due_at
                     limit c_deployments
                   ) l
        ), held (deployment_id, slots, bytes) as materialized (
            select h.deployment_id, count(*), sum(h.body_bytes)
              from agent.webhook_outbox h
             where h.worker_id = p_worker_id
             group by h.deployment_id
        ), unfilled (deployment_id, slots, bytes) as materialized (
            select g.deployment_id,
                   greatest(p_guaranteed - coalesce(h.slots, 0), 0),
                   greatest(p_guaranteed_bytes - coalesce(h.bytes, 0), 0)
              from (select distinct u from unnest(p_deployments) u) g (deployment_id)
              left join held h on h.deployment_id = g.deployment_id
        )
        select d.deployment_id,
               count(*) over (),
               row_number() over (order by coalesce(h.slots, 0) desc, random()),
               coalesce(w.slots, 0),
               coalesce(w.bytes, 0),
               (select coalesce(sum(a.slots), 0)::bigint from unfilled a),
               (select coalesce(sum(a.bytes), 0)::bigint from unfilled a)
          from due d
          left join held h on h.deployment_id = d.deployment_id
          left join unfilled w on w.deployment_id = d.deployment_id;
end
$function$;

comment on function agent.webhook_turns(bigint, uuid[], integer, bigint, timestamptz) is
    'The deployments that have due webhooks, in turns.';
