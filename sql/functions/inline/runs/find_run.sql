-- SPDX-License-Identifier: Apache-2.0
-- A run of a thread, unless the deletion of the thread has begun: then neither exists for clients.
-- "is not distinct from" here and elsewhere leaves the planner one index, the primary key.
-- Returns: one row or none.
-- Locks:   none.
create or replace function agent.find_run(p_deployment_id uuid, p_thread_id uuid, p_run_id uuid)
returns setof agent.runs
language sql stable parallel safe
-- No SET clause: it would keep the body from being inlined into FROM.
as $function$
    select r.*
      from agent.runs r
     where r.run_id = p_run_id
       and r.deployment_id is not distinct from p_deployment_id
       and r.thread_id is not distinct from p_thread_id
       and not exists (
            select from agent.threads t
             where t.deployment_id = p_deployment_id
               and t.thread_id = p_thread_id
               and t.is_deleted)
$function$;

comment on function agent.find_run(uuid, uuid, uuid) is 'A run of a thread.';
