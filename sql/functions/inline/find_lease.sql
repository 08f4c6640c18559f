-- SPDX-License-Identifier: Apache-2.0
-- The queue row of a run if a worker holds it under this epoch: the condition of every
-- write of a worker. "is not distinct from" leaves the planner one index, the primary key, and the
-- limit keeps it from turning the look-up into a join: with statistics of an empty queue it would
-- read all leases for each run. A row has a worker only while it is leased.
-- Returns: one row or none.
-- Locks:   none; agent.fence_leases comes first.
create or replace function agent.find_lease(
    p_worker_id bigint,
    p_account_id uuid,
    p_run_id uuid,
    p_epoch integer
) returns setof agent.run_queue
language sql stable parallel safe
-- No SET clause: it would keep the body from being inlined into FROM.
as $function$
    select q.*
      from agent.run_queue q
     where q.run_id = p_run_id
       and q.account_id is not distinct from p_account_id
       and q.epoch = p_epoch
       and q.worker_id is not distinct from p_worker_id
     limit 1
$function$;

comment on function agent.find_lease(bigint, uuid, uuid, integer) is
    'The queue row of a run that a worker holds under this epoch.';
