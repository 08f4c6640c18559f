-- SPDX-License-Identifier: Apache-2.0
-- The queue row of a run whose lease the worker holds under this epoch: the condition of every write of a
-- worker. "is not distinct from" leaves the planner one index, the primary key. The limit prevents a join,
-- which would read all leases for each run when the statistics are those of an empty queue. worker_id is
-- set only while a run is leased.
-- Returns: one row or none.
-- Locks:   none; call agent.fence_leases first.
create or replace function agent.find_lease(
    p_worker_id bigint,
    p_deployment_id uuid,
    p_run_id uuid,
    p_epoch integer
) returns setof agent.run_queue
language sql stable parallel safe
-- No SET clause: it would keep the body from being inlined into FROM.
as $function$
    select q.*
      from agent.run_queue q
     where q.run_id = p_run_id
       and q.deployment_id is not distinct from p_deployment_id
       and q.epoch = p_epoch
       and q.worker_id is not distinct from p_worker_id
     limit 1
$function$;

comment on function agent.find_lease(bigint, uuid, uuid, integer) is
    'The queue row of a run that a worker holds under this epoch.';
