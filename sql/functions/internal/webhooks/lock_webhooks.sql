-- SPDX-License-Identifier: Apache-2.0
-- Locks due webhooks of a deployment for agent.claim_webhooks: at most p_limit. p_room, p_room_bytes: slots of the
-- worker that the deployment may take, and bytes of bodies, which the last one may exceed. A receiver (host and port)
-- gets at most half of what its deployment's other receivers leave, its longest due webhooks first, so that
-- receivers which never answer leave slots for the others, whatever their backlog. Begins at a random receiver.
-- p_turns: how many deployments the claim asks; the more, the fewer receivers are visited.
-- Returns: the row ids of the locked rows, and the bytes of their bodies.
-- Locks:   rows of the outbox, skipping locked ones.
create or replace function agent.lock_webhooks(
    p_worker_id bigint,
    p_deployment_id uuid,
    p_limit integer,
    p_room integer,
    p_room_bytes bigint,
    p_turns integer,
    p_now timestamptz,
    out row_ids tid[],
    out bytes bigint
)
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set enable_hashjoin = off set enable_mergejoin = off set enable_sort = off set enable_incremental_sort = off
set plan_cache_mode = force_generic_plan
as $function$
#variable_conflict use_column
declare
    -- Most of the receivers may have nothing due for hours. A claim visits this many of them, in at most
    -- 6 ms, and those of the longest due webhooks, so that no receiver depends on chance alone.
    v_receivers integer := greatest(1000 / p_turns, 10);
    v_longest   integer := greatest(100 / p_turns, 10);
    v_receiver bigint;
    v_seen bigint[] := '{}';
    v_share       bigint;
    v_share_bytes bigint;
    v_locked       tid[];
    v_locked_bytes bigint;
begin
    row_ids := '{}';
    bytes := 0;
    -- As a condition of the lookup, due_at would not end the index scan at the first row that is not due: where
    -- nothing may be due, it is tested outside of it.
    for v_receiver in
        with recursive ring (receiver, first, number) as (
            select f.receiver, f.receiver, 1
              from agent.next_receiver(p_deployment_id, hashtextextended(random()::text, 0)) f (receiver)
             where f.receiver is not null
            union all
            select n.receiver, r.first, r.number + 1
              from ring r
             cross join lateral agent.next_receiver(p_deployment_id, r.receiver) n (receiver)
             where n.receiver <> r.first
               and r.number < v_receivers
        )
        select r.receiver
          from ring r
         cross join lateral (
                select d.due_at
                  from agent.webhook_outbox d
                 where d.dead_at is null
                   and d.deployment_id = p_deployment_id
                   and (d.receiver, d.due_at) >= (r.receiver, '-infinity')
                 order by d.receiver, d.due_at
                 limit 1
               ) f
         where f.due_at <= p_now
        union all
        select l.receiver
          from (
                select o.deployment_id, o.receiver, o.due_at
                  from agent.webhook_outbox o
                 where o.dead_at is null
                   and (o.deployment_id, o.due_at) >= (p_deployment_id, '-infinity')
                 order by o.deployment_id, o.due_at
                 limit v_longest
               ) l
         where l.deployment_id = p_deployment_id
           and l.due_at <= p_now
    loop
        continue when v_receiver = any (v_seen);
        v_seen := v_seen || v_receiver;
        -- It holds count(*): with its share, half of count(*) and the room, rounded up.
        select (p_room - cardinality(row_ids) - count(*) + 1) / 2,
               (p_room_bytes - bytes - coalesce(sum(h.body_bytes), 0) + 1) / 2
          into v_share, v_share_bytes
          from agent.webhook_outbox h
         where h.worker_id = p_worker_id
           and h.deployment_id is not distinct from p_deployment_id
           and h.receiver is not distinct from v_receiver;
        continue when v_share <= 0 or v_share_bytes <= 0;

        with due as materialized (
            select d.ctid as row_id, d.due_at, d.body_bytes
              from agent.webhook_outbox d
             where d.dead_at is null
               and d.deployment_id = p_deployment_id
               and (d.receiver, d.due_at) >= (v_receiver, '-infinity')
               and (d.receiver, d.due_at) <= (v_receiver, p_now)
             order by d.receiver, d.due_at
             limit least(v_share, p_limit - cardinality(row_ids))
               for no key update skip locked
        ), summed as (
            select d.row_id, d.body_bytes,
                   sum(d.body_bytes) over (order by d.due_at rows unbounded preceding) - d.body_bytes as before
              from due d
        )
        select coalesce(array_agg(s.row_id), '{}'), coalesce(sum(s.body_bytes), 0)
          into v_locked, v_locked_bytes
          from summed s
         where s.before < v_share_bytes;
        row_ids := row_ids || v_locked;
        bytes := bytes + v_locked_bytes;
        exit when cardinality(row_ids) >= p_limit;
    end loop;
end
$function$;

comment on function agent.lock_webhooks(bigint, uuid, integer, integer, bigint, integer, timestamptz) is
    'Locks due webhooks of a deployment for a claim.';
