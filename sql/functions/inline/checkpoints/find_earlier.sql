-- SPDX-License-Identifier: Apache-2.0
-- The checkpoints of a thread, or its snapshots, from the last namespace to the first, in each from the newest to the
-- oldest. Only one of the two tables is read.
-- p_ns, p_id: where to begin: at this one or, if it does not exist, at the next one; null for the beginning.
-- Returns: their rows, with the row ids (ctid) and bytes, the stored size of all columns that may be long; checkpoint
--          and metadata for snapshots only.
-- Locks:   none.
create or replace function agent.find_earlier(
    p_deployment_id uuid,
    p_thread_id uuid,
    p_is_snapshot boolean,
    p_ns text,
    p_id uuid
) returns table (
    checkpoint_ns text,
    checkpoint_id uuid,
    parent_checkpoint_id uuid,
    run_id uuid,
    created_at timestamptz,
    channels agent.channel_value[],
    checkpoint json,
    metadata jsonb,
    bytes integer,
    row_id tid
)
language sql stable parallel safe
-- No SET clause: it would keep the body from being inlined into FROM.
as $function$
    select x.*
      from (
            (select c.checkpoint_ns, c.checkpoint_id
               from agent.checkpoints c
              where not p_is_snapshot
                and p_id is null
                and c.deployment_id = p_deployment_id
                and c.thread_id = p_thread_id
              order by c.deployment_id desc, c.thread_id desc, c.checkpoint_ns desc, c.checkpoint_id desc
              limit 1)
            union all
            (select s.checkpoint_ns, s.checkpoint_id
               from agent.checkpoint_snapshots s
              where p_is_snapshot
                and p_id is null
                and s.deployment_id = p_deployment_id
                and s.thread_id = p_thread_id
              order by s.deployment_id desc, s.thread_id desc, s.checkpoint_ns desc, s.checkpoint_id desc
              limit 1)
            union all
            select p_ns, p_id
             where p_id is not null
           ) f (ns, id)
     cross join lateral (
            (select c.checkpoint_ns, c.checkpoint_id, c.parent_checkpoint_id, c.run_id, c.created_at, c.channels,
                    null::json, null::jsonb,
                    pg_column_size(c.channels) + pg_column_size(c.next) + pg_column_size(c.tasks)
                    + pg_column_size(c.metadata), c.ctid
               from agent.checkpoints c
              where not p_is_snapshot
                and c.deployment_id = p_deployment_id
                and c.thread_id = p_thread_id
                and (c.checkpoint_ns, c.checkpoint_id) <= (f.ns, f.id)
              order by c.deployment_id desc, c.thread_id desc, c.checkpoint_ns desc, c.checkpoint_id desc)
            union all
            (select s.checkpoint_ns, s.checkpoint_id, s.parent_checkpoint_id, s.run_id, s.created_at, s.channels,
                    s.checkpoint, s.metadata,
                    pg_column_size(s.channels) + pg_column_size(s.checkpoint) + pg_column_size(s.metadata), s.ctid
               from agent.checkpoint_snapshots s
              where p_is_snapshot
                and s.deployment_id = p_deployment_id
                and s.thread_id = p_thread_id
                and (s.checkpoint_ns, s.checkpoint_id) <= (f.ns, f.id)
              order by s.deployment_id desc, s.thread_id desc, s.checkpoint_ns desc, s.checkpoint_id desc)
           ) x
$function$;

comment on function agent.find_earlier(uuid, uuid, boolean, text, uuid) is
    'The checkpoints of a thread from the newest one on.';
