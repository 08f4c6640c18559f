-- SPDX-License-Identifier: Apache-2.0
-- The checkpoints and snapshots that a run saved in a thread. Each condition matches only one index, as
-- everywhere.
-- Returns: their rows without the values, the row ids (ctid), and bytes, the stored size of all columns that may be
--          long.
-- Locks:   none.
create or replace function agent.find_run_checkpoints(p_deployment_id uuid, p_thread_id uuid, p_run_id uuid)
returns table (
    is_snapshot boolean,
    checkpoint_ns text,
    checkpoint_id uuid,
    parent_checkpoint_id uuid,
    channels integer,
    bytes integer,
    row_id tid
)
language sql stable parallel safe
-- No SET clause: it would keep the body from being inlined into FROM.
as $function$
    select true, x.checkpoint_ns, x.checkpoint_id, x.parent_checkpoint_id, cardinality(x.channels),
           pg_column_size(x.channels) + pg_column_size(x.checkpoint) + pg_column_size(x.metadata), x.ctid
      from agent.checkpoint_snapshots x
     where x.run_id = p_run_id
       and uuid_hash_extended(x.thread_id, 0) = uuid_hash_extended(p_thread_id, 0)
       and x.deployment_id is not distinct from p_deployment_id
       and x.thread_id is not distinct from p_thread_id
    union all
    select false, x.checkpoint_ns, x.checkpoint_id, x.parent_checkpoint_id, cardinality(x.channels),
           pg_column_size(x.channels) + pg_column_size(x.next) + pg_column_size(x.tasks)
           + pg_column_size(x.metadata), x.ctid
      from agent.checkpoints x
     where x.run_id = p_run_id
       and uuid_hash_extended(x.thread_id, 0) = uuid_hash_extended(p_thread_id, 0)
       and x.deployment_id is not distinct from p_deployment_id
       and x.thread_id is not distinct from p_thread_id
$function$;

comment on function agent.find_run_checkpoints(uuid, uuid, uuid) is 'The checkpoints and snapshots of a run.';
