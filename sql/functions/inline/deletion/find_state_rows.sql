-- SPDX-License-Identifier: Apache-2.0
-- The checkpoints, records and values of a thread, table by table, in the order of their keys.
-- Returns: the table, the row id (ctid) and bytes: the stored size of all columns that may be long, plus 1,000 for the
--          row and as much for each further index of its table.
-- Locks:   none.
create or replace function agent.find_state_rows(p_deployment_id uuid, p_thread_id uuid)
returns table (name text, row_id tid, bytes integer)
language sql stable parallel safe
-- No SET clause: it would keep the body from being inlined into FROM.
as $function$
    (select 'checkpoints', c.ctid,
            3000 + pg_column_size(c.channels) + pg_column_size(c.next) + pg_column_size(c.tasks)
            + pg_column_size(c.metadata)
       from agent.checkpoints c
      where c.deployment_id = p_deployment_id
        and c.thread_id = p_thread_id
      order by c.deployment_id, c.thread_id, c.checkpoint_ns, c.checkpoint_id)
    union all
    (select 'checkpoint_snapshots', s.ctid,
            3000 + pg_column_size(s.channels) + pg_column_size(s.checkpoint) + pg_column_size(s.metadata)
       from agent.checkpoint_snapshots s
      where s.deployment_id = p_deployment_id
        and s.thread_id = p_thread_id
      order by s.deployment_id, s.thread_id, s.checkpoint_ns, s.checkpoint_id)
    union all
    (select 'checkpoint_writes', w.ctid, 2000 + pg_column_size(w.digests)
       from agent.checkpoint_writes w
      where w.deployment_id = p_deployment_id
        and w.thread_id = p_thread_id
      order by w.deployment_id, w.thread_id, w.checkpoint_ns, w.checkpoint_id, w.task_id, w.idx, w.run_seq)
    union all
    (select 'checkpoint_blobs', b.ctid, 1000 + pg_column_size(b.content)
       from agent.checkpoint_blobs b
      where b.deployment_id = p_deployment_id
        and b.thread_id = p_thread_id
      order by b.deployment_id, b.thread_id, b.digest, b.part)
    union all
    (select 'copied_runs', r.ctid, 1000 + coalesce(pg_column_size(r.metadata), 0)
       from agent.copied_runs r
      where r.deployment_id = p_deployment_id
        and r.thread_id = p_thread_id
      order by r.deployment_id, r.thread_id, r.run_id)
    union all
    (select 'checkpoint_items', i.ctid, 1000 + pg_column_size(i.content)
       from agent.checkpoint_items i
      where i.deployment_id = p_deployment_id
        and i.thread_id = p_thread_id
      order by i.deployment_id, i.thread_id, i.list_id, i.position)
$function$;

comment on function agent.find_state_rows(uuid, uuid) is 'The checkpoints, records and values of a thread.';
