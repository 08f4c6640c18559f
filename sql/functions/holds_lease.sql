-- SPDX-License-Identifier: Apache-2.0
-- Internal. Whether a worker holds a run under this epoch: the condition of every write of a worker.
-- "is not distinct from" finds no index, on purpose: with statistics of an empty queue the planner
-- would take the index of the worker's leases for each single run. A row has a worker only while leased.
-- Returns: true or false.
-- Locks:   none.
create or replace function agent.holds_lease(
    p_row agent.run_queue,
    p_worker_id bigint,
    p_epoch integer
) returns boolean
language sql immutable parallel safe
-- No SET clause: it would keep the body from being inlined.
as $function$
    select p_row.epoch = p_epoch and p_row.worker_id is not distinct from p_worker_id
$function$;

comment on function agent.holds_lease(agent.run_queue, bigint, integer) is
    'Whether a worker holds a run under this epoch.';
