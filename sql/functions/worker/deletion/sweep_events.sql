-- SPDX-License-Identifier: Apache-2.0
-- Deletes up to agent.deletion_bytes() of tasks and events of one deleted run, chosen at random from ten.
-- Returns: number of runs examined, 0 or 1: call again while it is 1.
-- Locks:   ten rows in agent.event_sweeps, skipping locked ones.
create or replace function agent.sweep_events() returns integer
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set enable_sort = off set plan_cache_mode = force_generic_plan
as $function$
declare
    v_row agent.event_sweeps;
begin
    select d.* into v_row
      from (
            select s.*
              from agent.event_sweeps s
             order by s.deployment_id, s.bucket, s.run_id
             limit 10
               for update skip locked
           ) d
     order by random()
     limit 1;
    if not found then
        return 0;
    end if;
    perform agent.delete_events(v_row.deployment_id, v_row.bucket, v_row.run_id, agent.deletion_bytes());
    if not exists (
        select from agent.run_events e
         where e.deployment_id = v_row.deployment_id
           and e.bucket = v_row.bucket
           and e.run_id = v_row.run_id
    ) and not exists (
        select from agent.checkpoint_tasks x
         where x.run_id = v_row.run_id
           and x.deployment_id is not distinct from v_row.deployment_id
    ) then
        delete from agent.event_sweeps s
         where s.deployment_id = v_row.deployment_id
           and s.bucket = v_row.bucket
           and s.run_id = v_row.run_id;
    end if;
    return 1;
end
$function$;

comment on function agent.sweep_events() is 'Deletes events of deleted runs.';
