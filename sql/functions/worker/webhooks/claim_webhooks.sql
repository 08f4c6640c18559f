-- SPDX-License-Identifier: Apache-2.0
-- Leases due webhooks to a worker: at most p_limit, for its p_free delivery slots and p_max_bytes of bodies. A
-- deployment gets no further webhook once its bodies have reached its part of these bytes.
-- Without a result by agent.save_webhooks they are due again after p_lease_sec, or when the worker is marked dead.
-- Deployments take turns, the one that holds the fewest slots first: each gets an equal part of p_limit, or what
-- those before it have left. p_guaranteed slots and p_guaranteed_bytes are guaranteed to each of p_deployments: the
-- part of them that it does not hold stays free for it. Any deployment may take the rest.
-- Returns: one row per delivery; attempt counts from 1; the body has the time of sending; deployment is the text
--          that httpd.conf makes of it: NAME, or NAME@ACCOUNT. Fewer than p_limit although more are due if
--          a deployment had less than its part. No rows for a worker that is not live.
-- Locks:   the worker (share, so that agent.mark_worker_dead sees the claim), then rows of the outbox, skipping
--          locked ones. Commits asynchronously: a lost claim leaves them due.
create or replace function agent.claim_webhooks(
    p_worker_id bigint,
    p_limit integer,
    p_free integer,
    p_max_bytes bigint,
    p_lease_sec integer,
    p_deployments uuid[],
    p_guaranteed integer,
    p_guaranteed_bytes bigint
) returns table (deployment_id uuid, run_id uuid, attempt integer, url text, body text, deployment text)
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set enable_hashjoin = off set enable_mergejoin = off set enable_sort = off
set plan_cache_mode = force_generic_plan
as $function$
#variable_conflict use_column
declare
    v_now   timestamptz := agent.now();
    v_turn  record;
    -- Not guaranteed to a deployment that does not hold it.
    v_open       bigint;
    v_open_bytes bigint;
    v_room       bigint;
    v_room_bytes bigint;
    v_taken       tid[];
    v_taken_bytes bigint;
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

    for v_turn in
        select t.*
          from agent.webhook_turns(p_worker_id, p_deployments, p_guaranteed, p_guaranteed_bytes, v_now) t
         order by t.turns_left desc
    loop
        if v_open is null then
            v_open := p_free - v_turn.all_unfilled;
            v_open_bytes := p_max_bytes - v_turn.all_unfilled_bytes;
        end if;
        v_room := least(v_turn.unfilled + greatest(v_open, 0), p_free - cardinality(v_rows));
        v_room_bytes := v_turn.unfilled_bytes + greatest(v_open_bytes, 0);
        continue when v_room <= 0 or v_room_bytes <= 0;
        select l.row_ids, l.bytes
          into v_taken, v_taken_bytes
          from agent.lock_webhooks(
                   p_worker_id, v_turn.deployment_id,
                   -- Its equal part, rounded up.
                   ((p_limit - cardinality(v_rows) + v_turn.turns_left - 1) / v_turn.turns_left)::integer,
                   v_room::integer, v_room_bytes, v_turn.turns::integer, v_now) l;
        v_rows := v_rows || v_taken;
        v_open := v_open - greatest(cardinality(v_taken) - v_turn.unfilled, 0);
        v_open_bytes := v_open_bytes - greatest(v_taken_bytes - v_turn.unfilled_bytes, 0);
        exit when cardinality(v_rows) >= p_limit;
    end loop;

    -- Their worker was lost during the last attempt. agent.count_accounts takes them from the counts.
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
             -- No further condition: the planner could read another index for it, from end to end. Webhooks
             -- that were given up above have other row ids.
             where o.ctid = any (v_rows)
            returning o.deployment_id, o.run_id, o.attempts, o.url, o.body
        )
        select c.deployment_id, c.run_id, c.attempts::integer, c.url,
               left(c.body, -1) || ', "webhook_sent_at" : '
               || to_json(agent.render_time(v_now))::text || '}',
               (
               select d.name || case d.account_id
                                    when agent.built_in_account() then ''
                                    else '@' || d.account_id
                                end
                 from agent.deployments d
                where d.deployment_id = c.deployment_id
               )
          from claimed c;
end
$function$;

comment on function agent.claim_webhooks(bigint, integer, integer, bigint, integer, uuid[], integer, bigint) is
    'Leases due webhooks to a worker.';
