-- SPDX-License-Identifier: Apache-2.0
-- Saves the results of attempts to deliver webhooks. A delivered webhook is deleted, also when its worker has
-- lost the attempt. A failure counts only when its worker holds the attempt. The next attempt follows after
-- agent.webhook_delay (+-20 %, so that receivers are not hit in waves), or later when the receiver asked for
-- it, up to the longest of those delays. A refused webhook is given up at once. Can be repeated.
-- p_items: [{"d": deployment_id, "r": run_id, "n": attempt, "o": delivered | failed | refused, "t": error text,
-- "s": seconds that the receiver asked for, or null}, ...].
-- Returns: one row per item: delivered, again (after next_sec), dead, or gone when it is not held.
-- Locks:   rows of the outbox, in the order of their keys, and of the counts of accounts with a limit.
create or replace function agent.save_webhooks(p_worker_id bigint, p_items json)
returns table (run_id uuid, outcome text, next_sec integer)
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $function$
#variable_conflict use_column
declare
    v_now   timestamptz := agent.now();
    v_item  record;
    v_delay interval;
    -- Deployments of webhooks that are no longer pending.
    v_done  uuid[] := '{}';
    v_dead  timestamptz;
begin
    for v_item in
        select i.*
          from json_to_recordset(p_items) as i (d uuid, r uuid, n integer, o text, t text, s integer)
         order by i.r, i.d
    loop
        run_id := v_item.r;
        outcome := 'gone';
        next_sec := null;
        if v_item.o = 'delivered' then
            delete from agent.webhook_outbox w
             where w.run_id = v_item.r
               and w.deployment_id is not distinct from v_item.d
            returning w.dead_at into v_dead;
            if found then
                outcome := 'delivered';
                v_done := v_done || case when v_dead is null then array[v_item.d] end;
            end if;
            return next;
            continue;
        end if;

        v_delay := agent.jitter(case when v_item.o = 'failed' then agent.webhook_delay(v_item.n) end);
        if v_delay is not null and v_item.s is not null then
            v_delay := greatest(
                v_delay, least(v_item.s * interval '1 second', agent.webhook_delay(10)));
        end if;
        update agent.webhook_outbox w
           set worker_id = null,
               due_at = v_now + coalesce(v_delay, '0'),
               last_error = coalesce(v_item.t, 'unknown'),
               dead_at = case when v_delay is null then v_now end
         where w.run_id = v_item.r
           and w.deployment_id is not distinct from v_item.d
           and w.worker_id is not distinct from p_worker_id
           and w.attempts = v_item.n;
        if found then
            outcome := case when v_delay is null then 'dead' else 'again' end;
            next_sec := extract(epoch from v_delay)::integer;
            v_done := v_done || case when v_delay is null then array[v_item.d] end;
        end if;
        return next;
    end loop;
    if exists (select from agent.account_counts) then
        perform agent.change_count(d.id, 'webhooks', -d.webhooks)
           from (select x.id, count(*) as webhooks from unnest(v_done) x (id) group by x.id order by x.id) d;
    end if;
end
$function$;

comment on function agent.save_webhooks(bigint, json) is
    'Saves the results of attempts to deliver webhooks.';
