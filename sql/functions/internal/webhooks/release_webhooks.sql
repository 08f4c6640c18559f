-- SPDX-License-Identifier: Apache-2.0
-- Makes the webhooks that a lost or leaving worker was delivering due at once.
-- Returns: nothing.
-- Locks:   rows of the outbox, skipping locked ones: the result of their attempt is being saved.
create or replace function agent.release_webhooks(p_worker_id bigint) returns void
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $function$
begin
    update agent.webhook_outbox o
       set worker_id = null, due_at = agent.now()
     where o.ctid = any (array(
            select h.ctid
              from agent.webhook_outbox h
             where h.worker_id = p_worker_id
               for no key update skip locked));
end
$function$;

comment on function agent.release_webhooks(bigint) is
    'Makes the webhooks that a worker was delivering due at once.';
