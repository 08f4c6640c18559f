-- SPDX-License-Identifier: Apache-2.0
-- Inserts the events of held leases; existing ones are kept. Only a repeated batch contains existing events,
-- and "on conflict" doubles the cost of the insert: so the first attempt is made without it. The leases are
-- joined by hash, as in agent.save_tasks alone: both sides are arrays.
-- Returns: nothing.
-- Locks:   the caller holds the queue rows.
create or replace function agent.save_events(
    p_leases agent.run_queue[],
    p_events agent.batch_event[]
) returns void
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_nestloop = off set enable_mergejoin = off
set enable_hashjoin = on set plan_cache_mode = force_generic_plan
as $function$
begin
    insert into agent.run_events (deployment_id, bucket, run_id, seq, epoch, event, data, checkpoint_id)
    select q.deployment_id, q.events_bucket, q.run_id, i.seq, i.epoch, i.event, i.data, i.checkpoint_id
      from unnest(p_events) i
      join unnest(p_leases) q
        on q.deployment_id = i.deployment_id
       and q.run_id = i.run_id
       and q.epoch = i.epoch;
exception
    when unique_violation then
        insert into agent.run_events (
            deployment_id, bucket, run_id, seq, epoch, event, data, checkpoint_id)
        select q.deployment_id, q.events_bucket, q.run_id, i.seq, i.epoch, i.event, i.data, i.checkpoint_id
          from unnest(p_events) i
          join unnest(p_leases) q
            on q.deployment_id = i.deployment_id
           and q.run_id = i.run_id
           and q.epoch = i.epoch
            on conflict (deployment_id, bucket, run_id, seq) do nothing;
end
$function$;

comment on function agent.save_events(agent.run_queue[], agent.batch_event[]) is
    'Inserts events of leased runs.';
