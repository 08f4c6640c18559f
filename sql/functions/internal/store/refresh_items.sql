-- SPDX-License-Identifier: Apache-2.0
-- Restarts the time to live of items of the store that were read, unless it was started less than a minute ago, or less
-- than a hundredth of it: so a row that is read often is not written each time.
-- p_items: [[namespace, key], ...].
-- Returns: nothing.
-- Locks:   the items; those that are locked are passed over, since a put begins their time too.
create or replace function agent.refresh_items(p_deployment_id uuid, p_items json) returns void
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set enable_hashjoin = off set enable_mergejoin = off set plan_cache_mode = force_generic_plan
as $function$
declare
    v_now timestamptz := agent.now();
begin
    update agent.store_items i
       set expires_at = v_now + i.ttl
     where i.ctid = any (array(
            select l.ctid
              from json_array_elements(p_items) r (item)
             cross join lateral (
                    select x.ctid
                      from agent.store_items x
                     where x.deployment_id = p_deployment_id
                       and x.namespace = array(select json_array_elements_text(r.item -> 0))
                       and x.key = r.item ->> 1
                       -- In a form that leaves the planner one index.
                       and (x.expires_at > v_now
                            and x.expires_at <= v_now + x.ttl - least(x.ttl / 100, interval '1 minute')) is true
                     limit 1
                       for update skip locked
                   ) l));
end
$function$;

comment on function agent.refresh_items(uuid, json) is 'Restarts the time to live of items of the store.';
