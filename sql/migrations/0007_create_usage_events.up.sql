-- SPDX-License-Identifier: Apache-2.0
-- Purpose:  usage: one row per run that ended, written in the transaction that ends it.
-- Affects:  new objects only.
-- Locks:    none on existing tables.
-- Breaking: no.
set local lock_timeout = '2s';

create table agent.usage_events (
    account_id    uuid        not null,
    run_id        uuid        not null,
    thread_id     uuid        not null,
    assistant_id  uuid        not null,
    graph_id      text        not null,
    status        text        not null,
    attempts      smallint    not null,
    epoch         integer     not null,
    worker_id     bigint,
    created_at    timestamptz not null,
    started_at    timestamptz,
    finished_at   timestamptz not null,
    constraint usage_events_pkey primary key (account_id, run_id),
    constraint usage_events_status_check
        check (status in ('success', 'interrupted', 'error', 'timeout', 'rolled_back'))
);
comment on table agent.usage_events is
    'What ended, for billing. Survives the deletion of run and thread. '
    'Its key also proves who ended a run, when a batch is repeated after an unclear commit.';
comment on column agent.usage_events.account_id is 'Owner.';
comment on column agent.usage_events.run_id is 'The run that ended.';
comment on column agent.usage_events.thread_id is 'Its thread.';
comment on column agent.usage_events.assistant_id is 'Its assistant.';
comment on column agent.usage_events.graph_id is 'Its graph.';
comment on column agent.usage_events.status is 'Its final status, or rolled_back.';
comment on column agent.usage_events.attempts is 'Attempts that counted.';
comment on column agent.usage_events.epoch is
    'Lease under which it ended; 0 when it never started.';
comment on column agent.usage_events.worker_id is
    'Worker that reported its end; null when a cancel or a loss ended it.';
comment on column agent.usage_events.created_at is 'When the run was created.';
comment on column agent.usage_events.started_at is
    'When its first attempt was claimed; null when it never started.';
comment on column agent.usage_events.finished_at is 'When it ended.';

insert into agent.schema_version (version, name) values (7, 'create_usage_events');
