-- SPDX-License-Identifier: Apache-2.0
-- Leases due webhooks to a worker: at most p_limit, and no further one once their bodies have p_max_bytes.
-- Without a result by agent.save_webhooks they are due again after p_lease_sec, or when the worker is marked
-- dead. p_free: free delivery slots of the worker. A receiver gets at most half of the slots that other
-- receivers do not hold, its longest due webhooks first, so that receivers which never answer leave slots for
-- the others, whatever their backlog. Each claim begins at a random receiver.
-- Returns: one row per delivery; attempt counts from 1; the body has the time of sending; deployment is the name
--          that httpd.conf has for it, null for one of another account. No rows for a worker that is not live.
-- Locks:   the worker (share, so that agent.mark_worker_dead sees the claim), then rows of the outbox, skipping
--          locked ones. Commits asynchronously: a lost claim leaves them due.
create or replace function agent.claim_webhooks(
    p_worker_id bigint,
    p_limit integer,
    p_free integer,
    p_max_bytes bigint,
    p_lease_sec integer
) returns table (deployment_id uuid, run_id uuid, attempt integer, url text, body text, deployment text)
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set enable_hashjoin = off set enable_mergejoin = off set enable_sort = off
set plan_cache_mode = force_generic_plan
as $function$
#variable_conflict use_column
declare
    -- Most of the receivers may have nothing due for hours. A claim visits this many of them, in at most
    -- 6 ms, and those of the longest due webhooks, so that no receiver depends on chance alone.
    c_receivers constant integer := 1000;
    c_longest   constant integer := 100;
    v_now timestamptz := agent.now();
    v_receiver bigint;
    v_seen bigint[] := '{}';
    v_share integer;
    v_rows tid[] := '{}';
begin
    -- Most calls end here, without a lock or a write.
    perform from agent.webhook_outbox o
      where o.dead_at is null
        and o.due_at <= v_now
      order by o.due_at
      limit 1;
    if not found then
        return;
    end if;

    perform set_config('synchronous_commit', 'off', true);
    perform from agent.workers w
      where w.worker_id = p_worker_id
        and w.state = 'live'
        for share;
    if not found then
        return;
    end if;

    for v_receiver in
        with recursive ring (receiver, first, number) as (
            select f.receiver, f.receiver, 1
              from agent.next_receiver(hashtextextended(random()::text, 0)) f (receiver)
             where f.receiver is not null
            union all
            select n.receiver, r.first, r.number + 1
              from ring r
             cross join lateral agent.next_receiver(r.receiver) n (receiver)
             where n.receiver <> r.first
               and r.number < c_receivers
        )
        select r.receiver
          from ring r
         cross join lateral (
                select from agent.webhook_outbox d
                 where d.dead_at is null
                   and (d.receiver, d.due_at) >= (r.receiver, '-infinity')
                   and (d.receiver, d.due_at) <= (r.receiver, v_now)
                 order by d.receiver, d.due_at
                 limit 1
               ) due
        union all
        select l.receiver
          from (
                select o.receiver
                  from agent.webhook_outbox o
                 where o.dead_at is null
                   and o.due_at <= v_now
                 order by o.due_at
                 limit c_longest
               ) l
    loop
        continue when v_receiver = any (v_seen);
        v_seen := v_seen || v_receiver;
        -- It holds count(*): with its share, half of count(*) + p_free, rounded up.
        select (p_free - count(*) + 1) / 2
          into v_share
          from agent.webhook_outbox h
         where h.worker_id = p_worker_id
           and h.receiver is not distinct from v_receiver;
        v_rows := v_rows || array(
            select d.ctid
              from agent.webhook_outbox d
             where d.dead_at is null
               and (d.receiver, d.due_at) >= (v_receiver, '-infinity')
               and (d.receiver, d.due_at) <= (v_receiver, v_now)
             order by d.receiver, d.due_at
             limit greatest(least(v_share, p_limit - cardinality(v_rows)), 0)
               for no key update skip locked);
        exit when cardinality(v_rows) >= p_limit;
    end loop;

    -- Their worker was lost during the last attempt.
    update agent.webhook_outbox o
       set dead_at = v_now,
           worker_id = null,
           last_error = coalesce(o.last_error || '; ', '') || 'lost during the last attempt'
     where o.ctid = any (v_rows)
       and agent.webhook_delay(o.attempts) is null;

    return query
        with claimed as (
            update agent.webhook_outbox o
               set worker_id = p_worker_id,
                   attempts = o.attempts + 1,
                   due_at = v_now + p_lease_sec * interval '1 second'
             -- No further condition: the planner could read another index for it, from end to end.
             where o.ctid = any (array(
                    select f.row_id
                      from (
                            select u.row_id,
                                   sum(d.body_bytes) over (order by u.pos) - d.body_bytes as before
                              from unnest(v_rows) with ordinality u (row_id, pos)
                             cross join lateral (
                                    select p.body_bytes
                                      from agent.webhook_outbox p
                                     where p.ctid = u.row_id
                                       and p.dead_at is null
                                     limit 1
                                   ) d
                           ) f
                     where f.before < p_max_bytes))
            returning o.deployment_id, o.run_id, o.attempts, o.url, o.body
        )
        select c.deployment_id, c.run_id, c.attempts::integer, c.url,
               left(c.body, -1) || ', "webhook_sent_at" : '
               || to_json(agent.render_time(v_now))::text || '}',
               (
               select d.name
                 from agent.deployments d
                where d.deployment_id = c.deployment_id
                  and d.account_id = '00000000-0000-0000-0000-00000000000a'
               )
          from claimed c;
end
$function$;

comment on function agent.claim_webhooks(bigint, integer, integer, bigint, integer) is
    'Leases due webhooks to a worker.';
