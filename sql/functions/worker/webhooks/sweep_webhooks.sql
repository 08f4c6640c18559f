-- SPDX-License-Identifier: Apache-2.0
-- Deletes webhooks that were given up longer than p_retention ago.
-- Returns: number of rows deleted, at most 1,000: call again while it is not 0.
-- Locks:   rows of the outbox, skipping locked ones.
create or replace function agent.sweep_webhooks(p_retention interval) returns integer
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $function$
declare
    -- Computed first: the clock is volatile, and an index condition must not be.
    v_before  timestamptz := agent.now() - p_retention;
    v_deleted integer;
begin
    delete from agent.webhook_outbox o
     where o.ctid = any (array(
            select d.ctid
              from agent.webhook_outbox d
             where d.dead_at < v_before
             order by d.dead_at
             limit 1000
               for update skip locked));
    get diagnostics v_deleted = row_count;
    return v_deleted;
end
$function$;

comment on function agent.sweep_webhooks(interval) is 'Deletes webhooks that were given up.';
