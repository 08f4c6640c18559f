-- SPDX-License-Identifier: Apache-2.0
-- Gives a worker webhooks to deliver: at most p_limit of them, and no more once their bodies have
-- p_max_bytes. Without an answer by agent.save_webhooks they are due again after p_lease_sec, or when
-- the worker is buried. A body says when it was sent.
-- p_room is how many the worker could take now. A receiver gets half of what it does not hold already,
-- so that those which never answer leave room for the others, however many wait for them; the longest
-- due of each comes first. Claims begin with one receiver or another, as chance will have it.
-- Returns: one row per delivery; attempt counts from 1. No rows for a worker that is not live.
-- Locks:   the worker (share, so that a burial sees what was claimed), then rows of the outbox,
--          skipping locked ones. Commits asynchronously: a lost claim leaves them due.
create or replace function agent.claim_webhooks(
    p_worker_id bigint,
    p_limit integer,
    p_room integer,
    p_max_bytes bigint,
    p_lease_sec integer
) returns table (account_id uuid, run_id uuid, attempt integer, url text, body text)
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set enable_hashjoin = off set enable_mergejoin = off set enable_sort = off
set plan_cache_mode = force_generic_plan
as $function$
#variable_conflict use_column
declare
    -- However many receivers wait, for hours, most of them with nothing due: a claim looks at so many,
    -- 6 ms at most, and at those of the longest due, so that none has to wait for chance alone.
    c_receivers constant integer := 1000;
    c_longest   constant integer := 100;
    v_now timestamptz := agent.now();
    v_receiver bigint;
    v_seen bigint[] := '{}';
    v_share integer;
    v_rows tid[] := '{}';
begin
    -- Most calls end here: nothing is locked, nothing is written.
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
        and w.state = 1
        for share;
    if not found then
        return;
    end if;

    for v_receiver in
        with recursive ring (receiver, first, place) as (
            select f.receiver, f.receiver, 1
              from agent.next_receiver(hashtextextended(random()::text, 0)) f (receiver)
             where f.receiver is not null
            union all
            select n.receiver, r.first, r.place + 1
              from ring r
             cross join lateral agent.next_receiver(r.receiver) n (receiver)
             where n.receiver <> r.first
               and r.place < c_receivers
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
        select (p_room - count(*) + 1) / 2
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

    -- Whose worker was lost at the last attempt.
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
             -- Nothing else here: with one of its conditions an index could be read instead, from end to end.
             where o.ctid = any (array(
                    select f.row_id
                      from (
                            select u.row_id,
                                   sum(d.body_bytes) over (order by u.place) - d.body_bytes as before
                              from unnest(v_rows) with ordinality u (row_id, place)
                             cross join lateral (
                                    select p.body_bytes
                                      from agent.webhook_outbox p
                                     where p.ctid = u.row_id
                                       and p.dead_at is null
                                     limit 1
                                   ) d
                           ) f
                     where f.before < p_max_bytes))
            returning o.account_id, o.run_id, o.attempts, o.url, o.body
        )
        select c.account_id, c.run_id, c.attempts::integer, c.url,
               left(c.body, -1) || ', "webhook_sent_at" : '
               || to_json(agent.render_time(v_now))::text || '}'
          from claimed c;
end
$function$;

comment on function agent.claim_webhooks(bigint, integer, integer, bigint, integer) is
    'Gives a worker webhooks to deliver.';
