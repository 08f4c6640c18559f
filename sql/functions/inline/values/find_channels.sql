-- SPDX-License-Identifier: Apache-2.0
-- The values of a checkpoint, or of a snapshot; the table of the other is not read.
-- Returns: one row or none.
-- Locks:   none.
create or replace function agent.find_channels(
    p_deployment_id uuid,
    p_thread_id uuid,
    p_is_snapshot boolean,
    p_checkpoint_ns text,
    p_checkpoint_id uuid
) returns table (run_id uuid, channels agent.channel_value[])
language sql stable parallel safe
-- No SET clause: it would keep the body from being inlined into FROM.
as $function$
    select x.run_id, x.channels
      from agent.checkpoints x
     where not p_is_snapshot
       and x.deployment_id = p_deployment_id
       and x.thread_id = p_thread_id
       and x.checkpoint_ns = p_checkpoint_ns
       and x.checkpoint_id = p_checkpoint_id
    union all
    select x.run_id, x.channels
      from agent.checkpoint_snapshots x
     where p_is_snapshot
       and x.deployment_id = p_deployment_id
       and x.thread_id = p_thread_id
       and x.checkpoint_ns = p_checkpoint_ns
       and x.checkpoint_id = p_checkpoint_id
     -- Not flattened, as agent.find_children.
    offset 0
$function$;

comment on function agent.find_channels(uuid, uuid, boolean, text, uuid) is
    'The values of a checkpoint or snapshot.';
