-- SPDX-License-Identifier: Apache-2.0
-- Purpose:  threads, their checkpoints with values stored by difference, the records of a graph's library, copies of
--           threads, and the expiry of temporary threads.
-- Affects:  new objects only.
-- Locks:    none on existing tables.
-- Breaking: no.
set local lock_timeout = '2s';

-- Words of one column are a domain, in the tables of runs and threads: a check constraint of the table would be parsed
-- anew by each statement.
create domain agent.thread_status as text check (value in ('idle', 'busy', 'interrupted', 'error'));
comment on domain agent.thread_status is 'The status of a thread.';

create table agent.threads (
    deployment_id       uuid        not null,
    thread_id           uuid        not null,
    status              agent.thread_status not null default 'idle',
    temporary           boolean     not null default false,
    assistant_id        uuid,
    metadata            jsonb       not null default '{}',
    config              jsonb       not null default '{}',
    run_seq             bigint      not null default 0,
    active_run_id       uuid,
    head_checkpoint_id  uuid,
    head_run_id         uuid,
    head_has_next       boolean     not null default false,
    state_deletions     bigint      not null default 0,
    is_deleted          boolean     not null default false,
    created_at          timestamptz not null,
    updated_at          timestamptz not null,
    state_updated_at    timestamptz,
    ttl                 interval,
    updated_hour timestamp not null generated always as (date_trunc('hour', updated_at at time zone 'UTC')) stored,
    constraint threads_pkey primary key (deployment_id, thread_id),
    constraint threads_active_check check ((status = 'busy') = (active_run_id is not null))
) with (fillfactor = 70);
comment on table agent.threads is 'A conversation. Every change to its runs and its state locks this row first.';
comment on column agent.threads.deployment_id is 'The deployment that owns the row.';
comment on column agent.threads.thread_id is 'Identifier, unique within the deployment.';
comment on column agent.threads.status is
    'busy exactly while the thread has an unfinished run; create_run relies on it.';
comment on column agent.threads.temporary is
    'Created for one stateless run; deleted some time after it has no unfinished run.';
comment on column agent.threads.assistant_id is
    'Assistant of the last run; null before the first one, and for a system assistant, which is not deleted.';
comment on column agent.threads.metadata is 'The client''s metadata, with graph_id and assistant_id of the last run.';
comment on column agent.threads.config is 'Shown in the record; empty on creation.';
comment on column agent.threads.run_seq is 'Number of the last run or call created on the thread.';
comment on column agent.threads.active_run_id is
    'The one unfinished run that is ready or leased; it blocks the others.';
comment on column agent.threads.head_checkpoint_id is 'Checkpoint with the current state, null before the first one.';
comment on column agent.threads.head_run_id is 'Copy of run_id of the head checkpoint.';
comment on column agent.threads.head_has_next is 'True when the head checkpoint has nodes left to execute.';
comment on column agent.threads.state_deletions is
    'How often checkpoints of the thread were deleted: a copy that is under way is then not of one moment.';
comment on column agent.threads.is_deleted is
    'Its deletion has begun: for clients it does not exist, but its id is taken until the rest is deleted.';
comment on column agent.threads.created_at is 'When the thread was created.';
comment on column agent.threads.updated_at is 'When it was last changed.';
comment on column agent.threads.state_updated_at is 'When the head last moved.';
comment on column agent.threads.ttl is 'How long it is kept without a run or an update of the state; null: for ever.';
comment on column agent.threads.updated_hour is
    'The hour of updated_at: an index of it orders searches, and changes once an hour, not with each change.';

create index threads_assistant on agent.threads (deployment_id, assistant_id, thread_id)
    where assistant_id is not null;
comment on index agent.threads_assistant is
    'Finds the threads to delete with an assistant; without those of system assistants, which most runs use.';

create index threads_updated on agent.threads (deployment_id, updated_hour)
    where not temporary and not is_deleted;
comment on index agent.threads_updated is 'Finds the threads of a search that were changed last.';

-- The hash of each path begins with the deployment: others with the same metadata are not found. Without a list of
-- pending entries, which each search would read whole and the first run of a thread might have to merge.
create index threads_metadata on agent.threads
    using gin (jsonb_set('{}', array[deployment_id::text], metadata) jsonb_path_ops) with (fastupdate = off)
    where not temporary and not is_deleted;
comment on index agent.threads_metadata is 'Finds the threads of a search by their metadata, below their deployment.';

create table agent.thread_expiries (
    deployment_id  uuid        not null,
    thread_id      uuid        not null,
    expires_at     timestamptz not null,
    constraint thread_expiries_pkey primary key (deployment_id, thread_id)
);
comment on table agent.thread_expiries is
    'Threads scheduled for deletion. A separate table, so that other threads have no row, and threads and runs no '
    'index on a column that each end of a run changes.';
comment on column agent.thread_expiries.deployment_id is 'The deployment that owns the row.';
comment on column agent.thread_expiries.thread_id is 'The thread that expires.';
comment on column agent.thread_expiries.expires_at is 'Not deleted before.';

create index thread_expiries_due on agent.thread_expiries (expires_at);
comment on index agent.thread_expiries_due is 'Scanned by agent.expire_threads.';

create sequence agent.checkpoint_list_seq as bigint;
comment on sequence agent.checkpoint_list_seq is 'Numbers the lists of agent.checkpoint_items.';

create type agent.channel_value as (
    name         text,
    length       integer,
    bytes        bigint,
    list_ids     bigint[],
    ends         integer[],
    stored_from  integer,
    content      text
);
comment on type agent.channel_value is
    'One channel of a checkpoint. A list is a few segments of lists of agent.checkpoint_items: the elements of the '
    'first list before ends[1], those of the second before ends[2], and so on; a list that begins after another one '
    'has no elements before its beginning. Any other value is in content when it is short, else the only element of '
    'a list.';
comment on column agent.channel_value.name is 'Name of the channel.';
comment on column agent.channel_value.length is 'Number of elements of a list; null for any other value.';
comment on column agent.channel_value.bytes is 'Length of the value as JSON text, or a little more.';
comment on column agent.channel_value.list_ids is 'The lists of its segments, in order; empty for a short value.';
comment on column agent.channel_value.ends is 'The position after the last element of each segment.';
comment on column agent.channel_value.stored_from is
    'Position of the first element that was stored with this checkpoint, all in the last list; null for none.';
comment on column agent.channel_value.content is 'JSON text of a short value that is not a list, else null.';

create table agent.checkpoints (
    deployment_id         uuid                   not null,
    thread_id             uuid                   not null,
    checkpoint_ns         text                   not null,
    checkpoint_id         uuid                   not null,
    parent_checkpoint_id  uuid,
    run_id                uuid,
    channels              agent.channel_value[]  not null,
    next                  json                   not null,
    tasks                 json                   not null,
    metadata              json                   not null,
    format                text,
    state_bytes           bigint                 not null,
    created_at            timestamptz            not null,
    constraint checkpoints_pkey primary key (deployment_id, thread_id, checkpoint_ns, checkpoint_id)
);
comment on table agent.checkpoints is 'States of a thread as the API shows them, one per step of a run.';
comment on column agent.checkpoints.deployment_id is 'The deployment that owns the row.';
comment on column agent.checkpoints.thread_id is 'The thread whose state it is.';
comment on column agent.checkpoints.checkpoint_ns is
    'Namespace of the graph that it is of; empty for the root graph, whose newest checkpoint is the head.';
comment on column agent.checkpoints.checkpoint_id is 'Identifier made by the runner; ordered by time within a run.';
comment on column agent.checkpoints.parent_checkpoint_id is 'The checkpoint of the same namespace that preceded it.';
comment on column agent.checkpoints.run_id is 'The run that saved it; null when a client updated the state.';
comment on column agent.checkpoints.channels is 'The values: short ones, and references into agent.checkpoint_items.';
comment on column agent.checkpoints.next is 'Array of the nodes to execute next.';
comment on column agent.checkpoints.tasks is 'Array of the tasks of those nodes.';
comment on column agent.checkpoints.metadata is 'source, step, writes and parents as the runner sent them.';
comment on column agent.checkpoints.format is 'Format of the records that continue from here; null: the values do.';
comment on column agent.checkpoints.state_bytes is 'Approximate length of the values as JSON text.';
comment on column agent.checkpoints.created_at is 'When it was saved.';

create index checkpoints_parent on agent.checkpoints (
    coalesce(parent_checkpoint_id, thread_id), (checkpoint_ns || ''), uuid_hash_extended(thread_id, 0));
comment on index agent.checkpoints_parent is
    'Finds the checkpoints that continue a deleted one, without reading the others of the thread or those of its '
    'copies. Expressions, so that no other condition matches it.';
create index checkpoints_run on agent.checkpoints (run_id, uuid_hash_extended(thread_id, 0));
comment on index agent.checkpoints_run is
    'Finds the checkpoints of a run that is deleted, without those of copies of its thread.';

create table agent.checkpoint_tasks (
    deployment_id  uuid        not null,
    thread_id      uuid        not null,
    checkpoint_id  uuid        not null,
    task_id        text        not null,
    run_id         uuid        not null,
    checkpoint_ns  text        not null,
    task           text        not null,
    saved_at       timestamptz not null,
    constraint checkpoint_tasks_pkey primary key (deployment_id, thread_id, checkpoint_id, task_id, run_id)
);
comment on table agent.checkpoint_tasks is
    'Reports of runs about tasks of checkpoints: a row for each, since the tasks of a step end one by one. It is '
    'deleted with its run, which may have continued from a checkpoint of another one.';
comment on column agent.checkpoint_tasks.deployment_id is 'The deployment that owns the row.';
comment on column agent.checkpoint_tasks.thread_id is 'The thread of the checkpoint.';
comment on column agent.checkpoint_tasks.checkpoint_id is 'The checkpoint in whose tasks it is.';
comment on column agent.checkpoint_tasks.task_id is 'Identifier of the task made by the runner.';
comment on column agent.checkpoint_tasks.run_id is 'The run that executed it.';
comment on column agent.checkpoint_tasks.checkpoint_ns is 'Namespace of the checkpoint.';
comment on column agent.checkpoint_tasks.task is
    'JSON text of an object: error, interrupts, result, checkpoint and state, as far as the runner sent them.';
comment on column agent.checkpoint_tasks.saved_at is 'When it was saved; the newest of several runs is shown.';

create index checkpoint_tasks_run on agent.checkpoint_tasks (run_id);
comment on index agent.checkpoint_tasks_run is 'Finds the tasks of a run that is deleted.';

create table agent.checkpoint_items (
    deployment_id  uuid    not null,
    thread_id      uuid    not null,
    list_id        bigint  not null,
    position       integer not null,
    elements       integer not null,
    end_bytes      bigint  not null,
    is_digests     boolean not null default false,
    content        text    not null,
    constraint checkpoint_items_pkey primary key (deployment_id, thread_id, list_id, position),
    constraint checkpoint_items_elements_check check (elements > 0)
);
comment on table agent.checkpoint_items is
    'The elements of the lists of checkpoints and snapshots, and their other long values. A list grows at its end only '
    'and is shared by the checkpoints of a chat: each step stores what it adds. A checkpoint that continues an earlier '
    'one, whose list has grown since, begins another list.';
comment on column agent.checkpoint_items.deployment_id is 'The deployment that owns the row.';
comment on column agent.checkpoint_items.thread_id is
    'The thread; threads share no content, so that one can be deleted as a whole.';
comment on column agent.checkpoint_items.list_id is 'The list of the elements, which segments of channels name.';
comment on column agent.checkpoint_items.position is
    'Position of its first element in the values that contain it, from 0.';
comment on column agent.checkpoint_items.elements is
    'Number of elements: 1; at most 128 that were added at once, in 2 KB; at most 256 digests.';
comment on column agent.checkpoint_items.end_bytes is 'Length, as JSON text, of the value that ends with this row.';
comment on column agent.checkpoint_items.is_digests is
    'Whether the elements are digests of agent.checkpoint_blobs, in a list of a snapshot.';
comment on column agent.checkpoint_items.content is 'JSON texts of the elements, joined by commas.';

create table agent.inherited_items (
    deployment_id  uuid    not null,
    thread_id      uuid    not null,
    is_snapshot    boolean not null,
    checkpoint_ns  text    not null,
    checkpoint_id  uuid    not null,
    list_id        bigint  not null,
    first          integer not null,
    until          integer not null,
    constraint inherited_items_pkey primary key (
        deployment_id, thread_id, is_snapshot, checkpoint_ns, checkpoint_id, list_id)
);
comment on table agent.inherited_items is
    'Elements of deleted checkpoints that remaining ones contain. They are deleted with the last checkpoint that '
    'contains them (agent.release_items).';
comment on column agent.inherited_items.deployment_id is 'The deployment that owns the row.';
comment on column agent.inherited_items.thread_id is 'The thread of the checkpoint.';
comment on column agent.inherited_items.is_snapshot is
    'Whether they are of snapshots: the ancestor is in agent.checkpoint_snapshots.';
comment on column agent.inherited_items.checkpoint_ns is 'Namespace of the ancestor.';
comment on column agent.inherited_items.checkpoint_id is
    'The nearest remaining ancestor of the deleted checkpoint; the thread''s id for none.';
comment on column agent.inherited_items.list_id is 'The list of the elements.';
comment on column agent.inherited_items.first is 'Position of the first element in the list.';
comment on column agent.inherited_items.until is 'Position after the last element.';

create table agent.item_sweeps (
    deployment_id  uuid        not null,
    thread_id      uuid        not null,
    list_id        bigint      not null,
    first          integer     not null,
    is_snapshot    boolean     not null default false,
    due_at         timestamptz not null default clock_timestamp(),
    constraint item_sweeps_pkey primary key (deployment_id, thread_id, list_id)
);
comment on table agent.item_sweeps is
    'Lists whose elements from some position on no checkpoint contains, and which were too many for one statement: '
    'agent.sweep_state deletes them.';
comment on column agent.item_sweeps.deployment_id is 'The deployment that owns the row.';
comment on column agent.item_sweeps.thread_id is 'The thread whose elements are deleted.';
comment on column agent.item_sweeps.list_id is 'The list whose elements are deleted.';
comment on column agent.item_sweeps.is_snapshot is
    'Whether the list is of snapshots: its deletion changes the uses of blobs, which only the holder of the thread '
    'does.';
comment on column agent.item_sweeps.first is 'Position of the first element to delete; all after it are deleted too.';
comment on column agent.item_sweeps.due_at is 'Order of the sweep: a transaction moves its row to the end.';

create index item_sweeps_due on agent.item_sweeps (due_at);
comment on index agent.item_sweeps_due is 'Scanned by agent.sweep_state.';

create table agent.copied_runs (
    deployment_id  uuid  not null,
    thread_id      uuid  not null,
    run_id         uuid  not null,
    metadata       jsonb,
    constraint copied_runs_pkey primary key (deployment_id, thread_id, run_id)
);
comment on table agent.copied_runs is
    'Members that the checkpoints of a copied thread show of the runs that saved them, which are runs of another '
    'thread and may be deleted with it.';
comment on column agent.copied_runs.deployment_id is 'The deployment that owns the row.';
comment on column agent.copied_runs.thread_id is 'The copy, a thread.';
comment on column agent.copied_runs.run_id is 'The run that saved checkpoints of the copied thread.';
comment on column agent.copied_runs.metadata is
    'Members that the run adds to the metadata of its checkpoints, without the id of the thread.';

create table agent.thread_copies (
    deployment_id       uuid        not null,
    thread_id           uuid        not null,
    source_id           uuid        not null,
    source_created_at   timestamptz not null,
    state_deletions     bigint      not null,
    assistant_id        uuid,
    metadata            jsonb       not null,
    config              jsonb       not null,
    head_checkpoint_id  uuid,
    head_run_id         uuid,
    head_has_next       boolean     not null,
    checkpoint_ns       text,
    next_checkpoint_id  uuid,
    snapshot_ns         text,
    next_snapshot_id    uuid,
    run_seq             bigint      not null,
    started_at          timestamptz not null,
    expires_at          timestamptz not null,
    stored_bytes        bigint[]    not null default '{0,0,0,0,0,0}',
    constraint thread_copies_pkey primary key (deployment_id, thread_id)
) with (fillfactor = 50);
comment on table agent.thread_copies is
    'Copies of threads that are under way: the row of the copy in agent.threads is inserted at the end, so that '
    'nothing of it can be read before. A copy that was not continued for some time is deleted (agent.sweep_copies).';
comment on column agent.thread_copies.deployment_id is 'The deployment that owns the row.';
comment on column agent.thread_copies.thread_id is 'Id of the copy; agent.threads has it when it is complete.';
comment on column agent.thread_copies.source_id is 'The thread that is copied.';
comment on column agent.thread_copies.source_created_at is 'When that was created: another one may take its id.';
comment on column agent.thread_copies.state_deletions is 'Of that thread when the copy began.';
comment on column agent.thread_copies.stored_bytes is
    'What it has stored, by table (agent.add_stored_bytes): a measure of its account adds it.';
comment on column agent.thread_copies.assistant_id is 'Of that thread when the copy began.';
comment on column agent.thread_copies.metadata is 'Of that thread when the copy began.';
comment on column agent.thread_copies.config is 'Of that thread when the copy began.';
comment on column agent.thread_copies.head_checkpoint_id is 'Of that thread when the copy began.';
comment on column agent.thread_copies.head_run_id is 'Of that thread when the copy began.';
comment on column agent.thread_copies.head_has_next is 'Of that thread when the copy began.';
comment on column agent.thread_copies.checkpoint_ns is
    'Namespace whose checkpoints are copied; null when all are, and the snapshots follow.';
comment on column agent.thread_copies.next_checkpoint_id is
    'The next checkpoint to copy: those of a namespace are copied from the newest to the first one.';
comment on column agent.thread_copies.snapshot_ns is
    'The same for snapshots; null when all are copied, and the lists follow.';
comment on column agent.thread_copies.next_snapshot_id is 'The next snapshot to copy.';
comment on column agent.thread_copies.run_seq is
    'Of that thread when the copy began: runs of the copy come after those whose writes it has.';
comment on column agent.thread_copies.started_at is 'When the copy began.';
comment on column agent.thread_copies.expires_at is 'When it counts as abandoned.';

create table agent.copy_lists (
    deployment_id  uuid    not null,
    thread_id      uuid    not null,
    list_id        bigint  not null,
    first          integer not null,
    until          integer not null,
    constraint copy_lists_pkey primary key (deployment_id, thread_id, list_id)
);
comment on table agent.copy_lists is
    'Elements that the copied checkpoints contain and that a copy under way has not copied yet.';
comment on column agent.copy_lists.deployment_id is 'The deployment that owns the row.';
comment on column agent.copy_lists.thread_id is 'The copy, as in agent.thread_copies.';
comment on column agent.copy_lists.list_id is 'The list, which has the same number in the copy.';
comment on column agent.copy_lists.first is 'Position of the first element in the list.';
comment on column agent.copy_lists.until is 'Position after the last element.';

create table agent.copy_blobs (
    deployment_id  uuid    not null,
    thread_id      uuid    not null,
    digest         uuid    not null,
    uses           integer not null,
    next_part      integer not null default 0,
    constraint copy_blobs_pkey primary key (deployment_id, thread_id, digest)
);
comment on table agent.copy_blobs is 'Blobs of which a copy under way has copied uses, but not all parts yet.';
comment on column agent.copy_blobs.deployment_id is 'The deployment that owns the row.';
comment on column agent.copy_blobs.thread_id is 'The copy, as in agent.thread_copies.';
comment on column agent.copy_blobs.digest is 'The blob.';
comment on column agent.copy_blobs.uses is 'How often copied rows name it.';
comment on column agent.copy_blobs.next_part is 'The next part to copy.';

create table agent.checkpoint_snapshots (
    deployment_id         uuid                   not null,
    thread_id             uuid                   not null,
    checkpoint_ns         text                   not null,
    checkpoint_id         uuid                   not null,
    parent_checkpoint_id  uuid,
    run_id                uuid,
    channels              agent.channel_value[]  not null,
    checkpoint            json                   not null,
    metadata              jsonb                  not null,
    created_at            timestamptz            not null,
    epoch                 integer,
    constraint checkpoint_snapshots_pkey primary key (deployment_id, thread_id, checkpoint_ns, checkpoint_id)
);
comment on table agent.checkpoint_snapshots is
    'The data with which a graph''s library continues from a checkpoint. agent.checkpoints has the API''s view; either '
    'may be stored without the other.';
comment on column agent.checkpoint_snapshots.deployment_id is 'The deployment that owns the row.';
comment on column agent.checkpoint_snapshots.thread_id is 'The thread whose state it is.';
comment on column agent.checkpoint_snapshots.checkpoint_ns is 'Namespace of its graph; empty for the root graph.';
comment on column agent.checkpoint_snapshots.checkpoint_id is 'Identifier made by the library; ordered by time.';
comment on column agent.checkpoint_snapshots.parent_checkpoint_id is
    'The snapshot of the same namespace that preceded it.';
comment on column agent.checkpoint_snapshots.run_id is 'The run that saved it; null when a client updated the state.';
comment on column agent.checkpoint_snapshots.channels is
    'The values, all of them: digests of agent.checkpoint_blobs and lists of digests, in agent.checkpoint_items; a '
    'null for an empty channel.';
comment on column agent.checkpoint_snapshots.checkpoint is
    'The library''s object without the values: versions and the like.';
comment on column agent.checkpoint_snapshots.metadata is 'The library''s metadata, which it searches.';
comment on column agent.checkpoint_snapshots.created_at is 'When it was saved.';
comment on column agent.checkpoint_snapshots.epoch is 'run_queue.epoch of the attempt that saved it; null in a copy.';

create index checkpoint_snapshots_parent
    on agent.checkpoint_snapshots (
        coalesce(parent_checkpoint_id, thread_id), (checkpoint_ns || ''), uuid_hash_extended(thread_id, 0));
comment on index agent.checkpoint_snapshots_parent is 'As agent.checkpoints_parent.';
create index checkpoint_snapshots_run on agent.checkpoint_snapshots (run_id, uuid_hash_extended(thread_id, 0));
comment on index agent.checkpoint_snapshots_run is 'Finds the snapshots of a run that is deleted.';

create table agent.checkpoint_writes (
    deployment_id  uuid    not null,
    thread_id      uuid    not null,
    checkpoint_ns  text    not null,
    checkpoint_id  uuid    not null,
    task_id        text    not null,
    idx            integer not null,
    run_seq        bigint  not null,
    run_id         uuid,
    task_path      text    not null,
    channel        text    not null,
    digests        uuid[]  not null,
    is_list        boolean not null,
    deletions      bigint  not null default 0,
    constraint checkpoint_writes_pkey primary key (
        deployment_id, thread_id, checkpoint_ns, checkpoint_id, task_id, idx, run_seq)
);
comment on table agent.checkpoint_writes is
    'What the tasks of a step wrote, before the snapshot that follows it: so that a task which has ended is not '
    'executed again. Of the rows of one idx the oldest run''s counts, or the newest''s when idx is negative.';
comment on column agent.checkpoint_writes.deployment_id is 'The deployment that owns the row.';
comment on column agent.checkpoint_writes.thread_id is 'The thread of the snapshot.';
comment on column agent.checkpoint_writes.checkpoint_ns is 'Namespace of the snapshot.';
comment on column agent.checkpoint_writes.checkpoint_id is 'The snapshot with which the step began.';
comment on column agent.checkpoint_writes.task_id is 'The task.';
comment on column agent.checkpoint_writes.idx is
    'Number of the write within the task; negative for those that replace an earlier one: an error, an interrupt.';
comment on column agent.checkpoint_writes.run_seq is
    'run_queue.thread_seq of the run or call that wrote it, so that its deletion restores what it replaced.';
comment on column agent.checkpoint_writes.run_id is 'The run that wrote it; null when a client updated the state.';
comment on column agent.checkpoint_writes.task_path is 'Where the task stands in the graph, for the library.';
comment on column agent.checkpoint_writes.channel is 'The channel that is written.';
comment on column agent.checkpoint_writes.digests is 'Its value in agent.checkpoint_blobs; none for an empty one.';
comment on column agent.checkpoint_writes.is_list is 'Whether the value is the list of these blobs.';
comment on column agent.checkpoint_writes.deletions is
    'threads.state_deletions when it was written: the deletion of a snapshot deletes only earlier writes to it.';

create index checkpoint_writes_run on agent.checkpoint_writes (run_id, uuid_hash_extended(thread_id, 0));
comment on index agent.checkpoint_writes_run is 'Finds the writes of a run that is deleted.';

create table agent.checkpoint_blobs (
    deployment_id  uuid    not null,
    thread_id      uuid    not null,
    digest         uuid    not null,
    part           integer not null,
    parts          integer,
    stored_parts   integer,
    uses           integer,
    type           text,
    is_text        boolean not null,
    content        bytea   not null,
    constraint checkpoint_blobs_pkey primary key (deployment_id, thread_id, digest, part),
    constraint checkpoint_blobs_part_check check ((part = 0) = (uses is not null)),
    constraint checkpoint_blobs_uses_check check (uses >= 0),
    constraint checkpoint_blobs_complete_check check (uses = 0 or stored_parts = parts)
);
comment on table agent.checkpoint_blobs is
    'The values of snapshots and writes, each once in a thread, whatever the number of its uses; in parts when it is '
    'long.';
comment on column agent.checkpoint_blobs.deployment_id is 'The deployment that owns the row.';
comment on column agent.checkpoint_blobs.thread_id is
    'The thread; threads share no content, so that one can be deleted as a whole.';
comment on column agent.checkpoint_blobs.digest is
    'First 128 bits of the SHA-256 of type and content, made by the runner.';
comment on column agent.checkpoint_blobs.part is
    'Number of the part, from 0. Part 0 alone has the members of the whole blob.';
comment on column agent.checkpoint_blobs.parts is 'Number of its parts.';
comment on column agent.checkpoint_blobs.stored_parts is 'How many of them are stored; they come in order.';
comment on column agent.checkpoint_blobs.uses is
    'How often rows of agent.checkpoint_items and agent.checkpoint_writes name the digest; agent.sweep_blobs deletes a '
    'blob without uses.';
comment on column agent.checkpoint_blobs.type is 'How the library encoded it.';
comment on column agent.checkpoint_blobs.is_text is 'Whether the part was sent as text; it is UTF-8 then.';
comment on column agent.checkpoint_blobs.content is 'The bytes of the part.';

create index checkpoint_blobs_unused on agent.checkpoint_blobs (deployment_id, thread_id) where uses = 0;
comment on index agent.checkpoint_blobs_unused is 'Scanned by agent.sweep_blobs.';

create table agent.blob_sweeps (
    deployment_id  uuid        not null,
    thread_id      uuid        not null,
    due_at         timestamptz not null,
    constraint blob_sweeps_pkey primary key (deployment_id, thread_id)
);
comment on table agent.blob_sweeps is 'Threads that may have blobs without uses: agent.sweep_blobs deletes them.';
comment on column agent.blob_sweeps.deployment_id is 'The deployment that owns the row.';
comment on column agent.blob_sweeps.thread_id is 'The thread whose unused blobs are deleted.';
comment on column agent.blob_sweeps.due_at is 'Not examined before.';

create index blob_sweeps_due on agent.blob_sweeps (due_at);
comment on index agent.blob_sweeps_due is 'Scanned by agent.sweep_blobs.';

insert into agent.schema_version (version, name) values (2, 'create_threads');
