-- SPDX-License-Identifier: Apache-2.0
-- The tables whose rows agent.sweep_accounts deletes for each deployment of an account, in its order. Tables that name
-- other work come before the threads: a sweep skips a row whose thread it cannot lock, so rows without a thread would
-- delay the rows of other accounts. keys: the order in which an index has the rows of a deployment; a condition makes a
-- partial index usable. `threads` stands for their runs too.
-- Returns: a row for each.
-- Locks:   none.
create or replace function agent.list_deleted_tables()
returns table (number integer, name text, keys text, condition text)
language sql immutable parallel safe
-- No SET clause: it would keep the body from being inlined.
as $function$
    select x.number, x.name, x.keys, x.condition
      from (values
            (1, 'thread_expiries', 'thread_id', ''),
            (2, 'run_sweeps', 'thread_id, run_id', ''),
            (3, 'write_sweeps', 'thread_id, checkpoint_ns, checkpoint_id', ''),
            (4, 'item_sweeps', 'thread_id, list_id', ''),
            (5, 'blob_sweeps', 'thread_id', ''),
            (6, 'event_sweeps', 'bucket, run_id', ''),
            (7, 'thread_copies', 'thread_id', ''),
            (8, 'copy_lists', 'thread_id, list_id', ''),
            (9, 'copy_blobs', 'thread_id, digest', ''),
            (10, 'copied_runs', 'thread_id, run_id', ''),
            (11, 'threads', 'thread_id', ''),
            (12, 'webhook_outbox', 'due_at', 'and x.dead_at is null'),
            (13, 'webhook_outbox', 'dead_at', 'and x.dead_at is not null'),
            -- Without an index: those of a minute.
            (14, 'calls', 'call_id', ''),
            (15, 'checkpoint_tasks', 'thread_id, checkpoint_id, task_id, run_id', ''),
            (16, 'checkpoint_writes', 'thread_id, checkpoint_ns, checkpoint_id, task_id, idx, run_seq', ''),
            (17, 'checkpoint_snapshots', 'thread_id, checkpoint_ns, checkpoint_id', ''),
            (18, 'checkpoints', 'thread_id, checkpoint_ns, checkpoint_id', ''),
            (19, 'inherited_items', 'thread_id, is_snapshot, checkpoint_ns, checkpoint_id, list_id', ''),
            (20, 'checkpoint_items', 'thread_id, list_id, position', ''),
            (21, 'checkpoint_blobs', 'thread_id, digest, part', ''),
            (22, 'run_events', 'bucket, run_id, seq', ''),
            (23, 'store_items', 'namespace, key', ''),
            (24, 'assistant_versions', 'assistant_id, version', ''),
            (25, 'assistants', 'assistant_id', ''),
            (26, 'graphs', 'graph_id', ''),
            (27, 'usage_events', 'run_id', '')
           ) x (number, name, keys, condition)
$function$;

comment on function agent.list_deleted_tables() is 'The tables whose rows agent.sweep_accounts deletes.';
