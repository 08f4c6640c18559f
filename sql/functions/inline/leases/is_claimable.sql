-- SPDX-License-Identifier: Apache-2.0
-- Whether a row of the queue is ready and not delayed, so that a worker may claim it: a quarantined run (max_shared),
-- or another. The conditions of the indexes run_queue_ready and run_queue_quarantined. p_is_quarantined: a constant,
-- which selects the index.
-- Returns: the condition, never null.
-- Locks:   none.
create or replace function agent.is_claimable(p_row agent.run_queue, p_is_quarantined boolean) returns boolean
language sql immutable parallel safe
-- No SET clause: it would keep the planner from inlining the body, and so from using the index.
as $function$
    select p_row.state = 'ready' and p_row.not_before is null and (p_row.max_shared is not null) = p_is_quarantined
$function$;

comment on function agent.is_claimable(agent.run_queue, boolean) is
    'Whether a worker may claim the row.';
