-- SPDX-License-Identifier: Apache-2.0
-- The next receiver of a deployment's pending webhooks, in a ring: the lowest hash above p_receiver, else the
-- lowest of all.
-- Returns: one agent.webhook_outbox.receiver; null when the deployment has no pending webhook.
-- Locks:   none.
create or replace function agent.next_receiver(p_deployment_id uuid, p_receiver bigint) returns setof bigint
language sql stable parallel safe
-- No SET clause: it would keep the body from being inlined, as would a scalar result.
as $function$
    select coalesce(
               (select o.receiver
                  from agent.webhook_outbox o
                 where o.dead_at is null
                   and o.deployment_id = p_deployment_id
                   and o.receiver > p_receiver
                 order by o.deployment_id, o.receiver
                 limit 1),
               (select o.receiver
                  from agent.webhook_outbox o
                 where o.dead_at is null
                   and o.deployment_id = p_deployment_id
                 order by o.deployment_id, o.receiver
                 limit 1))
$function$;

comment on function agent.next_receiver(uuid, bigint) is 'The next receiver of webhooks in the ring of receivers.';
