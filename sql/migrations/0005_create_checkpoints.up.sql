-- SPDX-License-Identifier: Apache-2.0
-- Purpose:  checkpoints: snapshots of a thread's state, with content-addressed values.
-- Affects:  new objects only.
-- Locks:    none on existing tables.
-- Breaking: no.
set local lock_timeout = '2s';

create type agent.channel_value as (
    name     text,
    is_list  boolean,
    digests  uuid[]
);
comment on type agent.channel_value is
    'One channel of a checkpoint: a JSON array of long elements as their digests, any other value as '
    'one digest.';
comment on column agent.channel_value.name is 'Name of the channel.';
comment on column agent.channel_value.is_list is
    'True when the value is an array that was stored element by element.';
comment on column agent.channel_value.digests is 'Keys in agent.checkpoint_blobs, in order.';

create table agent.checkpoints (
    account_id            uuid                   not null,
    thread_id             uuid                   not null,
    checkpoint_id         uuid                   not null,
    parent_checkpoint_id  uuid,
    run_id                uuid                   not null,
    channels              agent.channel_value[]  not null,
    next                  json                   not null,
    tasks                 json                   not null,
    metadata              json                   not null,
    opaque                json,
    state_bytes           bigint not null,
    created_at            timestamptz            not null,
    constraint checkpoints_pkey primary key (account_id, thread_id, checkpoint_id)
);
comment on table agent.checkpoints is 'Snapshots of a thread''s state, one per step of a run.';
comment on column agent.checkpoints.account_id is 'Owner.';
comment on column agent.checkpoints.thread_id is 'The thread.';
comment on column agent.checkpoints.checkpoint_id is
    'Identifier made by the runner; ordered by time within a run.';
comment on column agent.checkpoints.parent_checkpoint_id is 'The snapshot before it.';
comment on column agent.checkpoints.run_id is 'The run that saved it.';
comment on column agent.checkpoints.channels is
    'The values, as references into agent.checkpoint_blobs.';
comment on column agent.checkpoints.next is 'Array of the nodes to execute next.';
comment on column agent.checkpoints.tasks is 'Array of the tasks of those nodes.';
comment on column agent.checkpoints.metadata is
    'source, step, writes and parents as the runner sent them.';
comment on column agent.checkpoints.opaque is 'Whatever else the runner needs to go on from here.';
comment on column agent.checkpoints.state_bytes is
    'Approximate length of the values as JSON text.';
comment on column agent.checkpoints.created_at is 'When it was saved.';

create table agent.checkpoint_blobs (
    account_id  uuid not null,
    thread_id   uuid not null,
    digest      uuid not null,
    content     text not null,
    constraint checkpoint_blobs_pkey primary key (account_id, thread_id, digest)
);
comment on table agent.checkpoint_blobs is
    'Values of checkpoints, each stored once per thread: the 20 snapshots of a chat share its '
    'messages.';
comment on column agent.checkpoint_blobs.account_id is 'Owner.';
comment on column agent.checkpoint_blobs.thread_id is
    'The thread; content is not shared between threads, so that a thread can be deleted whole.';
comment on column agent.checkpoint_blobs.digest is 'First 128 bits of the SHA-256 of content.';
comment on column agent.checkpoint_blobs.content is 'JSON text of the value.';

create table agent.blob_sweeps (
    account_id  uuid        not null,
    thread_id   uuid        not null,
    due_at      timestamptz not null,
    constraint blob_sweeps_pkey primary key (account_id, thread_id)
);
comment on table agent.blob_sweeps is
    'Threads some of whose checkpoints were removed: agent.sweep_blobs removes the values that only those had.';
comment on column agent.blob_sweeps.account_id is 'Owner.';
comment on column agent.blob_sweeps.thread_id is 'The thread.';
comment on column agent.blob_sweeps.due_at is 'Not before then.';
create index blob_sweeps_due on agent.blob_sweeps (due_at);
comment on index agent.blob_sweeps_due is 'What is to be swept next.';

insert into agent.schema_version (version, name) values (5, 'create_checkpoints');
