-- SPDX-License-Identifier: Apache-2.0
-- Purpose:  threads, their checkpoints with content-addressed values, and the expiry of temporary threads.
-- Affects:  new objects only.
-- Locks:    none on existing tables.
-- Breaking: no.
set local lock_timeout = '2s';

create table agent.threads (
    deployment_id       uuid        not null,
    thread_id           uuid        not null,
    status              text        not null default 'idle',
    temporary           boolean     not null default false,
    assistant_id        uuid,
    metadata            jsonb       not null default '{}',
    config              jsonb       not null default '{}',
    run_seq             bigint      not null default 0,
    active_run_id       uuid,
    head_checkpoint_id  uuid,
    head_run_id         uuid,
    head_has_next       boolean     not null default false,
    created_at          timestamptz not null,
    updated_at          timestamptz not null,
    state_updated_at    timestamptz,
    constraint threads_pkey primary key (deployment_id, thread_id),
    constraint threads_status_check
        check (status in ('idle', 'busy', 'interrupted', 'error')),
    constraint threads_active_check check ((status = 'busy') = (active_run_id is not null))
) with (fillfactor = 70);
comment on table agent.threads is
    'A conversation. Every change to its runs and its state locks this row first.';
comment on column agent.threads.deployment_id is 'Its deployment.';
comment on column agent.threads.thread_id is 'Identifier, unique within the deployment.';
comment on column agent.threads.status is
    'busy exactly while the thread has an unfinished run; create_run relies on it.';
comment on column agent.threads.temporary is
    'Created for one stateless run; deleted some time after it has no unfinished run.';
comment on column agent.threads.assistant_id is
    'Assistant of the last run; null before the first one, and for a system assistant, which is not deleted.';
comment on column agent.threads.metadata is
    'The client''s metadata, with graph_id and assistant_id of the last run.';
comment on column agent.threads.config is 'Shown in the record; empty on creation.';
comment on column agent.threads.run_seq is 'Number of the last run created on the thread.';
comment on column agent.threads.active_run_id is
    'The one unfinished run that is ready or leased; it blocks the others.';
comment on column agent.threads.head_checkpoint_id is
    'Checkpoint with the current state, null before the first one.';
comment on column agent.threads.head_run_id is 'Copy of run_id of the head checkpoint.';
comment on column agent.threads.head_has_next is
    'True when the head checkpoint has nodes left to execute.';
comment on column agent.threads.created_at is 'When it was created.';
comment on column agent.threads.updated_at is 'When it was last changed.';
comment on column agent.threads.state_updated_at is 'When the head last moved.';

create index threads_assistant on agent.threads (deployment_id, assistant_id, thread_id)
    where assistant_id is not null;
comment on index agent.threads_assistant is
    'Finds the threads to delete with an assistant; without those of system assistants, which most runs use.';

create table agent.thread_expiries (
    deployment_id  uuid        not null,
    thread_id      uuid        not null,
    expires_at     timestamptz not null,
    constraint thread_expiries_pkey primary key (deployment_id, thread_id)
);
comment on table agent.thread_expiries is
    'Threads scheduled for deletion. A separate table, so that threads and runs have no index on '
    'a column that each end of a run changes.';
comment on column agent.thread_expiries.deployment_id is 'Its deployment.';
comment on column agent.thread_expiries.thread_id is 'The thread.';
comment on column agent.thread_expiries.expires_at is 'Not deleted before.';

create index thread_expiries_due on agent.thread_expiries (expires_at);
comment on index agent.thread_expiries_due is 'Scanned by agent.expire_threads.';

create type agent.channel_value as (
    name     text,
    is_list  boolean,
    digests  uuid[]
);
comment on type agent.channel_value is
    'One channel of a checkpoint: the digests of the elements of a JSON array of long elements, one '
    'digest of any other value.';
comment on column agent.channel_value.name is 'Name of the channel.';
comment on column agent.channel_value.is_list is
    'True when the value is an array that was stored element by element.';
comment on column agent.channel_value.digests is 'Keys in agent.checkpoint_blobs, in order.';

create table agent.checkpoints (
    deployment_id         uuid                   not null,
    thread_id             uuid                   not null,
    checkpoint_id         uuid                   not null,
    parent_checkpoint_id  uuid,
    run_id                uuid                   not null,
    channels              agent.channel_value[]  not null,
    next                  json                   not null,
    tasks                 json                   not null,
    metadata              json                   not null,
    opaque                json,
    state_bytes           bigint                 not null,
    created_at            timestamptz            not null,
    constraint checkpoints_pkey primary key (deployment_id, thread_id, checkpoint_id)
);
comment on table agent.checkpoints is 'Snapshots of a thread''s state, one per step of a run.';
comment on column agent.checkpoints.deployment_id is 'Its deployment.';
comment on column agent.checkpoints.thread_id is 'The thread.';
comment on column agent.checkpoints.checkpoint_id is
    'Identifier made by the runner; ordered by time within a run.';
comment on column agent.checkpoints.parent_checkpoint_id is 'The snapshot that preceded it.';
comment on column agent.checkpoints.run_id is 'The run that saved it.';
comment on column agent.checkpoints.channels is
    'The values, as references into agent.checkpoint_blobs.';
comment on column agent.checkpoints.next is 'Array of the nodes to execute next.';
comment on column agent.checkpoints.tasks is 'Array of the tasks of those nodes.';
comment on column agent.checkpoints.metadata is
    'source, step, writes and parents as the runner sent them.';
comment on column agent.checkpoints.opaque is 'Data of the runner, to continue from here.';
comment on column agent.checkpoints.state_bytes is
    'Approximate length of the values as JSON text.';
comment on column agent.checkpoints.created_at is 'When it was saved.';

create table agent.checkpoint_blobs (
    deployment_id  uuid not null,
    thread_id      uuid not null,
    digest         uuid not null,
    content        text not null,
    constraint checkpoint_blobs_pkey primary key (deployment_id, thread_id, digest)
);
comment on table agent.checkpoint_blobs is
    'Values of checkpoints, each stored once per thread: the 20 snapshots of a chat share its '
    'messages.';
comment on column agent.checkpoint_blobs.deployment_id is 'Its deployment.';
comment on column agent.checkpoint_blobs.thread_id is
    'The thread; threads share no content, so that one can be deleted as a whole.';
comment on column agent.checkpoint_blobs.digest is 'First 128 bits of the SHA-256 of content.';
comment on column agent.checkpoint_blobs.content is 'JSON text of the value.';

create table agent.blob_sweeps (
    deployment_id  uuid        not null,
    thread_id      uuid        not null,
    due_at         timestamptz not null,
    constraint blob_sweeps_pkey primary key (deployment_id, thread_id)
);
comment on table agent.blob_sweeps is
    'Threads with deleted checkpoints: agent.sweep_blobs deletes the values that only those had.';
comment on column agent.blob_sweeps.deployment_id is 'Its deployment.';
comment on column agent.blob_sweeps.thread_id is 'The thread.';
comment on column agent.blob_sweeps.due_at is 'Not swept before.';
create index blob_sweeps_due on agent.blob_sweeps (due_at);
comment on index agent.blob_sweeps_due is 'Scanned by agent.sweep_blobs.';

insert into agent.schema_version (version, name) values (2, 'create_threads');
