-- SPDX-License-Identifier: Apache-2.0
-- Whether more than one run has reported about a task of a checkpoint.
-- Returns: true or false.
-- Locks:   none.
create or replace function agent.was_repeated(p_deployment_id uuid, p_thread_id uuid, p_checkpoint_id uuid)
returns boolean
language plpgsql stable security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set enable_hashagg = off set plan_cache_mode = force_generic_plan
as $function$
begin
    return exists (
        select
          from agent.checkpoint_tasks x
         where x.deployment_id = p_deployment_id
           and x.thread_id = p_thread_id
           and x.checkpoint_id = p_checkpoint_id
           and (x.run_id in (select s.run_id from agent.find_swept_runs(p_deployment_id, p_thread_id) s)) is not true
         group by x.task_id
        having count(*) > 1);
end
$function$;

comment on function agent.was_repeated(uuid, uuid, uuid) is 'Whether several runs executed a task of a checkpoint.';
