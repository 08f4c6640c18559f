-- SPDX-License-Identifier: Apache-2.0
-- Purpose:  the schema, its version, accounts and their assistants.
-- Affects:  new objects only.
-- Locks:    none on existing tables.
-- Breaking: no.
set local lock_timeout = '2s';

create schema agent;
comment on schema agent is
    'Threads, runs and state of the agent server. Only its functions write.';

create table agent.schema_version (
    version     integer     not null,
    name        text        not null,
    applied_at  timestamptz not null default clock_timestamp(),
    constraint schema_version_pkey primary key (version),
    constraint schema_version_positive check (version > 0)
);
comment on table agent.schema_version is
    'One row per applied migration; the highest version is the version of the schema.';
comment on column agent.schema_version.version is 'Number of the migration file.';
comment on column agent.schema_version.name is
    'Name of the migration file without number and ending.';
comment on column agent.schema_version.applied_at is 'When it was applied.';

create table agent.accounts (
    account_id  uuid        not null,
    name        text        not null,
    created_at  timestamptz not null default clock_timestamp(),
    constraint accounts_pkey primary key (account_id),
    constraint accounts_name_key unique (name)
);
comment on table agent.accounts is
    'Owners of data. Hot tables carry account_id without a foreign key to this table: '
    'a key check would lock the one row of a busy account in every transaction of all its clients.';
comment on column agent.accounts.account_id is 'Identifier; the first column of every key.';
comment on column agent.accounts.name is 'Display name, unique.';
comment on column agent.accounts.created_at is 'When the account was created.';

insert into agent.accounts (account_id, name)
values ('00000000-0000-0000-0000-000000000001', 'default');

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
    'A graph with its settings. The first run that names a graph creates its system assistant.';
comment on column agent.assistants.account_id is 'Owner.';
comment on column agent.assistants.assistant_id is
    'Identifier; UUIDv5 of the graph name for system assistants.';
comment on column agent.assistants.graph_id is 'The graph that it runs.';
comment on column agent.assistants.name is 'Display name.';
comment on column agent.assistants.description is 'Free text or null.';
comment on column agent.assistants.config is 'Defaults for the config of each run.';
comment on column agent.assistants.context is 'Defaults for the context of each run.';
comment on column agent.assistants.metadata is 'Merged into the metadata of each run''s config.';
comment on column agent.assistants.version is 'Number of the version, from 1.';
comment on column agent.assistants.created_at is 'When it was created.';
comment on column agent.assistants.updated_at is 'When it was last changed.';

insert into agent.schema_version (version, name) values (1, 'create_accounts');
