-- SPDX-License-Identifier: Apache-2.0
-- The next deployment that has pending webhooks, in a ring: the lowest id above p_deployment_id, else the lowest of
-- all.
-- Returns: one deployment_id; null when no webhook is pending.
-- Locks:   none.
create or replace function agent.next_webhook_deployment(p_deployment_id uuid) returns setof uuid
language sql stable parallel safe
-- No SET clause: it would keep the body from being inlined, as would a scalar result.
as $function$
    select coalesce(
               (select o.deployment_id
                  from agent.webhook_outbox o
                 where o.dead_at is null
                   and o.deployment_id > p_deployment_id
                 order by o.deployment_id
                 limit 1),
               (select o.deployment_id
                  from agent.webhook_outbox o
                 where o.dead_at is null
                 order by o.deployment_id
                 limit 1))
$function$;

comment on function agent.next_webhook_deployment(uuid) is
    'The next deployment with webhooks in the ring of deployments.';
