-- SPDX-License-Identifier: Apache-2.0
-- The checkpoints of a namespace, or its snapshots, with a given parent; for the id of the thread those without a
-- parent. Each condition matches only one index, as everywhere; only one of the two tables is read.
-- Returns: their rows, with the row ids (ctid).
-- Locks:   none.
create or replace function agent.find_children(
    p_deployment_id uuid,
    p_thread_id uuid,
    p_is_snapshot boolean,
    p_checkpoint_ns text,
    p_checkpoint_id uuid
) returns table (checkpoint_id uuid, run_id uuid, channels agent.channel_value[], row_id tid)
language sql stable parallel safe
-- No SET clause: it would keep the body from being inlined into FROM.
as $function$
    select x.checkpoint_id, x.run_id, x.channels, x.ctid
      from agent.checkpoints x
     where not p_is_snapshot
       and coalesce(x.parent_checkpoint_id, x.thread_id) = p_checkpoint_id
       and x.checkpoint_ns || '' = p_checkpoint_ns
       and uuid_hash_extended(x.thread_id, 0) = uuid_hash_extended(p_thread_id, 0)
       and x.deployment_id is not distinct from p_deployment_id
       and x.thread_id is not distinct from p_thread_id
    union all
    select x.checkpoint_id, x.run_id, x.channels, x.ctid
      from agent.checkpoint_snapshots x
     where p_is_snapshot
       and coalesce(x.parent_checkpoint_id, x.thread_id) = p_checkpoint_id
       and x.checkpoint_ns || '' = p_checkpoint_ns
       and uuid_hash_extended(x.thread_id, 0) = uuid_hash_extended(p_thread_id, 0)
       and x.deployment_id is not distinct from p_deployment_id
       and x.thread_id is not distinct from p_thread_id
     -- Not flattened: the planner must not turn a lookup for each of several checkpoints into a join.
    offset 0
$function$;

comment on function agent.find_children(uuid, uuid, boolean, text, uuid) is
    'The checkpoints or snapshots that continue one.';
