-- SPDX-License-Identifier: Apache-2.0
-- Receivers of webhooks as a ring: the one behind the given one, the first behind the last.
-- Returns: one agent.webhook_outbox.receiver; null when nothing waits for any.
-- Locks:   none.
create or replace function agent.next_receiver(p_receiver bigint) returns setof bigint
language sql stable parallel safe
-- No SET clause: it would keep the body from being inlined, as would a result that is no set.
as $function$
    select coalesce(
               (select o.receiver
                  from agent.webhook_outbox o
                 where o.dead_at is null
                   and o.receiver > p_receiver
                 order by o.receiver
                 limit 1),
               (select o.receiver
                  from agent.webhook_outbox o
                 where o.dead_at is null
                 order by o.receiver
                 limit 1))
$function$;

comment on function agent.next_receiver(bigint) is 'The receiver of webhooks behind this one.';
