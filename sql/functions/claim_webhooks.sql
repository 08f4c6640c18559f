-- SPDX-License-Identifier: Apache-2.0
-- Gives a worker webhooks to deliver, the longest due first: at most p_limit of them, and no more
-- once their bodies have p_max_bytes. Without an answer by agent.save_webhooks they are due again
-- after p_lease_sec, or when the worker is buried. A body says when it was sent.
-- Returns: one row per delivery; attempt counts from 1. No rows for a worker that is not live.
-- Locks:   the worker (share, so that a burial sees what was claimed), then rows of the outbox,
--          skipping locked ones. Commits asynchronously: a lost claim leaves them due.
create or replace function agent.claim_webhooks(
    p_worker_id bigint,
    p_limit integer,
    p_max_bytes bigint,
    p_lease_sec integer
) returns table (account_id uuid, run_id uuid, attempt integer, url text, body text)
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set enable_hashjoin = off set enable_mergejoin = off set plan_cache_mode = force_generic_plan
as $function$
#variable_conflict use_column
declare
    v_now timestamptz := agent.now();
begin
    -- Most calls end here: nothing is locked, nothing is written.
    if not exists (
        select from agent.webhook_outbox o
         where o.dead_at is null
           and o.due_at <= v_now
    ) then
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

    -- Whose worker was lost at the last attempt.
    update agent.webhook_outbox o
       set dead_at = v_now,
           worker_id = null,
           last_error = coalesce(o.last_error || '; ', '') || 'lost during the last attempt'
     where o.ctid = any (array(
            select d.ctid
              from agent.webhook_outbox d
             where d.dead_at is null
               and d.due_at <= v_now
               and agent.webhook_delay(d.attempts) is null
             order by d.due_at
             limit 100
               for no key update skip locked));

    return query
        with due as (
            select d.ctid as row_id, d.due_at, d.body_bytes
              from agent.webhook_outbox d
             where d.dead_at is null
               and d.due_at <= v_now
             order by d.due_at
             limit p_limit
               for no key update skip locked
        ), claimed as (
            update agent.webhook_outbox o
               set worker_id = p_worker_id,
                   attempts = o.attempts + 1,
                   due_at = v_now + p_lease_sec * interval '1 second'
             where o.ctid = any (array(
                    select f.row_id
                      from (
                            select d.row_id,
                                   sum(d.body_bytes) over (order by d.due_at, d.row_id) - d.body_bytes
                                       as before
                              from due d
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

comment on function agent.claim_webhooks(bigint, integer, bigint, integer) is
    'Gives a worker webhooks to deliver.';
