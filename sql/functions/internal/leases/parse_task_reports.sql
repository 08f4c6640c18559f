-- SPDX-License-Identifier: Apache-2.0
-- Parses the reports about tasks of a batch: messages of type task, as in agent.save_batch. A report of a state with
-- more channels than a checkpoint may have loses them: each part of the state that is sent applies all of them.
-- Returns: the reports, in order.
-- Locks:   none.
create or replace function agent.parse_task_reports(p_task_reports json) returns agent.batch_task[]
language plpgsql stable security invoker
set search_path = '' set plan_cache_mode = force_generic_plan
as $function$
begin
    return (
        select array_agg(row(
                   i.d, i.r, i.e, coalesce(i.ns, ''), i.checkpoint_id, i.task ->> 'id',
                   agent.pick_members(i.task, case
                       when i.task ->> 'id' in (agent.update_id(), agent.pending_id())
                       then case when v.members <= agent.most_channels() then array['values', 'next'] else '{next}' end
                       else array['error', 'interrupts', 'result', 'checkpoint', 'state']
                   end)::text)::agent.batch_task)
          from json_to_recordset(p_task_reports) as i (
                   d uuid, r uuid, e integer, ns text, checkpoint_id uuid, task json)
         cross join lateral (
                select count(*) as members
                  from json_object_keys(
                           case when json_typeof(i.task -> 'values') = 'object' then i.task -> 'values' end)
               ) v);
end
$function$;

comment on function agent.parse_task_reports(json) is 'Parses the reports about tasks of a batch.';
