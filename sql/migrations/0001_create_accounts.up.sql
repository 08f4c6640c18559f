-- SPDX-License-Identifier: Apache-2.0
-- Purpose:  the schema, its version table and the accounts that own everything.
-- Affects:  new objects only.
-- Locks:    none on existing tables.
-- Breaking: no.
set local lock_timeout = '2s';

create schema agent;
comment on schema agent is
    'Threads, runs and state of the agent server. Written by its functions only.';

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
comment on column agent.accounts.name is 'Name for people, unique.';
comment on column agent.accounts.created_at is 'When the account was made.';

insert into agent.accounts (account_id, name)
values ('00000000-0000-0000-0000-000000000001', 'default');

insert into agent.schema_version (version, name) values (1, 'create_accounts');
