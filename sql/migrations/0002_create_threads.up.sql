-- SPDX-License-Identifier: Apache-2.0
-- Purpose:  assistants (a configured graph) and threads (a conversation).
-- Affects:  new objects only.
-- Locks:    none on existing tables, SHARE ROW EXCLUSIVE on agent.accounts for the key.
-- Breaking: no.
set local lock_timeout = '2s';

create table agent.assistants (
    account_id    uuid        not null,
    assistant_id  uuid        not null,
    graph_id      text        not null,
    name          text        not null,
    description   text,
    config        jsonb       not null default '{}',
    context       json        not null default '{}',
    metadata      jsonb       not null default '{}',
    version       integer     not null default 1,
    created_at    timestamptz not null,
    updated_at    timestamptz not null,
    constraint assistants_pkey primary key (account_id, assistant_id),
    constraint assistants_account_fkey foreign key (account_id) references agent.accounts,
    constraint assistants_version_positive check (version > 0)
);
comment on table agent.assistants is
    'A graph with its settings. The system assistant of a graph is made by the first run that '
    'names the graph.';
comment on column agent.assistants.account_id is 'Owner.';
comment on column agent.assistants.assistant_id is
    'Identifier; UUIDv5 of the graph name for system assistants.';
comment on column agent.assistants.graph_id is 'Name of the graph that it runs.';
comment on column agent.assistants.name is 'Name for people.';
comment on column agent.assistants.description is 'Free text or null.';
comment on column agent.assistants.config is 'Defaults of config of each run.';
comment on column agent.assistants.context is 'Defaults of context of each run.';
comment on column agent.assistants.metadata is 'Merged into the metadata of each run''s config.';
comment on column agent.assistants.version is 'Counts changes from 1.';
comment on column agent.assistants.created_at is 'When it was made.';
comment on column agent.assistants.updated_at is 'When it was changed last.';

create table agent.threads (
    account_id          uuid        not null,
    thread_id           uuid        not null,
    status              text        not null default 'idle',
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
    constraint threads_pkey primary key (account_id, thread_id),
    constraint threads_status_check
        check (status in ('idle', 'busy', 'interrupted', 'error')),
    constraint threads_active_check check ((status = 'busy') = (active_run_id is not null))
) with (fillfactor = 70);
comment on table agent.threads is
    'A conversation. Its row is the first lock of every change to its runs and its state.';
comment on column agent.threads.account_id is 'Owner.';
comment on column agent.threads.thread_id is 'Identifier, unique within the account.';
comment on column agent.threads.status is
    'busy exactly while the thread has an unfinished run; create_run relies on it.';
comment on column agent.threads.metadata is
    'The client''s metadata, plus graph_id and assistant_id of the last run.';
comment on column agent.threads.config is 'Shown in the record; empty on creation.';
comment on column agent.threads.run_seq is 'Number of the last run created on the thread.';
comment on column agent.threads.active_run_id is
    'The one unfinished run that is ready or executes; the others are blocked by it.';
comment on column agent.threads.head_checkpoint_id is
    'The current state, null before the first checkpoint.';
comment on column agent.threads.head_run_id is 'Copy of run_id of the head checkpoint.';
comment on column agent.threads.head_has_next is
    'True when the head checkpoint has nodes left to execute.';
comment on column agent.threads.created_at is 'When it was made.';
comment on column agent.threads.updated_at is 'When anything of it changed last.';
comment on column agent.threads.state_updated_at is 'When the head moved last.';

insert into agent.schema_version (version, name) values (2, 'create_threads');
