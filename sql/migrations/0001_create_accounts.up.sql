-- SPDX-License-Identifier: Apache-2.0
-- Purpose:  the schema, its version and region, accounts with their API keys, deployments, graphs, assistants and
--           store items. The psql variable region names the region; without it, it is `local`.
-- Affects:  new objects only.
-- Locks:    none on existing tables.
-- Breaking: no.
set local lock_timeout = '2s';
\ir display_names.sql

create schema agent;
comment on schema agent is 'Threads, runs and state of the agent server. Only its functions write.';

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
comment on column agent.schema_version.name is 'Name of the migration file without number and ending.';
comment on column agent.schema_version.applied_at is 'When it was applied.';

create table agent.region (
    region   text     not null,
    is_only  boolean  not null default true,
    constraint region_pkey primary key (region),
    constraint region_is_only_key unique (is_only),
    constraint region_is_only_check check (is_only),
    constraint region_name_check check (region ~ '^[a-z][a-z0-9-]{0,15}$')
);
comment on table agent.region is
    'The region of this database, in one row, which the first installation writes; a trigger refuses each change.';
comment on column agent.region.region is 'Name of the region, as in API keys.';
comment on column agent.region.is_only is 'True: its unique key makes a second row impossible.';

\if :{?region}
\else
    \set region local
\endif
insert into agent.region (region) values (:'region');

create table agent.accounts (
    account_id   uuid        not null,
    name         text        not null,
    home_region  text        not null,
    created_at   timestamptz not null default clock_timestamp(),
    closed_at    timestamptz,
    constraint accounts_pkey primary key (account_id),
    constraint accounts_home_region_fkey foreign key (home_region) references agent.region,
    constraint accounts_name_check check (name ~ :'display_name'),
    constraint accounts_built_in_check check (closed_at is null or account_id <> '00000000-0000-0000-0000-00000000000a')
);
comment on table agent.accounts is 'Owners of deployments and API keys.';
comment on column agent.accounts.account_id is 'Identifier.';
-- agent.insert_account and agent.update_account show this comment to their caller.
comment on constraint accounts_name_check on agent.accounts is
    '/name: expected from 1 to 200 characters, not only blank ones, and no control characters, of lines or of text '
    'direction.';
comment on column agent.accounts.name is 'Display name, which grants nothing: several accounts may have the same one.';
comment on column agent.accounts.home_region is
    'The region in which all its data is: that of this database, so that no row of another region can be inserted.';
comment on column agent.accounts.created_at is 'When the account was created.';
comment on column agent.accounts.closed_at is
    'When it was closed: since then its API keys are not valid. Null: it is open. The built-in account stays open.';

create table agent.account_limits (
    account_id     uuid         not null,
    name           text         not null,
    value          bigint,
    generation_id  uuid         not null,
    configured_at  timestamptz  not null,
    constraint account_limits_pkey primary key (account_id, name),
    constraint account_limits_name_check check (name in (
        'keys', 'queued_runs', 'running_runs', 'deployments', 'threads', 'webhooks', 'stored_bytes')),
    constraint account_limits_value_check check (value >= 0)
);
comment on table agent.account_limits is
    'Limits of accounts, as AgentLimit of httpd.conf has them: servers write them (agent.set_limits). Without a row '
    'there is no limit.';
comment on column agent.account_limits.account_id is
    'The account; the nil UUID: each account without a row of its own. No foreign key: httpd.conf may name any.';
comment on column agent.account_limits.name is 'What is limited.';
comment on column agent.account_limits.value is 'The most that the account may have; null: any number.';
comment on column agent.account_limits.generation_id is 'The start, or restart, of the server that names it.';
comment on column agent.account_limits.configured_at is
    'When that was, by the database''s clock; a server that was started earlier does not change it.';

create table agent.account_counts (
    account_id        uuid         not null,
    name              text         not null,
    shard             integer      not null,
    value             bigint       not null,
    counted_at        timestamptz  not null,
    sum_value         bigint       not null default 0,
    at_deployment_id  uuid,
    at_thread_id      uuid,
    constraint account_counts_pkey primary key (account_id, name, shard),
    constraint account_counts_shard_check check (shard >= -1)
) with (fillfactor = 50);
comment on table agent.account_counts is
    'Counts of what accounts with a limit have: the sum of the rows of an account and name, of which a transaction '
    'changes one that no other one holds. Counted anew each minute (agent.count_accounts).';
comment on column agent.account_counts.account_id is 'The account whose rows are counted.';
comment on column agent.account_counts.name is 'What is counted, as in agent.account_limits.';
comment on column agent.account_counts.shard is
    'Number of the row, from 0 to 15; -1: the correction of the last count; others: 16 and the number of a backend, '
    'and a multiple of 4194304 for each further row of it.';
comment on column agent.account_counts.value is 'Its part of the count; may be negative.';
comment on column agent.account_counts.counted_at is
    'In the row of shard -1: time of the last count; a minute before the last step while a count is under way; '
    'infinity: the count has ended.';
comment on column agent.account_counts.sum_value is 'Progress of a count, in row -1: threads found.';
comment on column agent.account_counts.at_deployment_id is 'Cursor of a count, in row -1: next deployment; null: none.';
comment on column agent.account_counts.at_thread_id is 'Cursor of a count, in row -1: next thread.';

create index account_counts_counted_idx on agent.account_counts (counted_at) where shard = -1;
comment on index agent.account_counts_counted_idx is 'Finds the accounts whose count is the oldest.';

create table agent.account_measures (
    account_id        uuid         not null,
    bytes             bigint       not null default 0,
    due_at            timestamptz  not null,
    measured_at       timestamptz,
    began_at          timestamptz,
    sum_bytes         bigint       not null default 0,
    copied_bytes      bigint       not null default 0,
    at_deployment_id  uuid,
    table_number      integer,
    last_key          text[],
    constraint account_measures_pkey primary key (account_id)
);
comment on table agent.account_measures is
    'Bytes that accounts with a limit have stored, and the position of the next measurement (agent.measure_accounts).';
comment on column agent.account_measures.account_id is 'The account whose bytes are measured.';
comment on column agent.account_measures.bytes is
    'Result of the last measure that has ended, none before the first one, and what copies of threads have stored '
    'since.';
comment on column agent.account_measures.due_at is
    'When the next measure begins; while one is under way, when it had its last turn.';
comment on column agent.account_measures.measured_at is
    'When the account had its last turn: in the future after the database''s clock went back.';
comment on column agent.account_measures.began_at is 'When the measure that is under way began.';
comment on column agent.account_measures.sum_bytes is 'What it has found.';
comment on column agent.account_measures.copied_bytes is
    'What copies of threads that have ended since have stored where it had passed.';
comment on column agent.account_measures.at_deployment_id is 'The deployment that it reads.';
comment on column agent.account_measures.table_number is 'The table that it reads (agent.list_exported_tables).';
comment on column agent.account_measures.last_key is
    'The key of the last row that it has read, or the first column of it, when it has all rows that begin with this; '
    'null: none of the table.';

create index account_measures_due_idx on agent.account_measures (due_at);
comment on index agent.account_measures_due_idx is 'Finds the accounts that are due to be measured.';
create index account_measures_measured_idx on agent.account_measures (measured_at);
comment on index agent.account_measures_measured_idx is 'Finds those that were measured in the future.';

create table agent.deployments (
    deployment_id  uuid        not null,
    account_id     uuid        not null,
    name           text        not null,
    created_at     timestamptz not null default clock_timestamp(),
    constraint deployments_pkey primary key (deployment_id),
    constraint deployments_name_key unique (account_id, name),
    constraint deployments_account_key unique (account_id, deployment_id),
    constraint deployments_account_fkey foreign key (account_id) references agent.accounts,
    constraint deployments_name_check check (name ~ '^[a-z0-9][a-z0-9_-]{0,62}$')
);
comment on table agent.deployments is
    'Agent servers. Each is a data space: no function reads or changes rows of another deployment. Hot '
    'tables carry deployment_id without a foreign key to this table: a key check would lock the one row '
    'of a busy deployment in every transaction of all its clients.';
comment on column agent.deployments.deployment_id is 'Identifier; part of every key of the data.';
comment on column agent.deployments.account_id is 'Owner.';
comment on column agent.deployments.name is 'Name, unique within the account; fits into a label of a host name.';
comment on column agent.deployments.created_at is 'When the deployment was created.';
comment on constraint deployments_account_key on agent.deployments is 'A key is for deployments of its own account.';

create table agent.api_keys (
    key_id         text collate "C"  not null,
    account_id     uuid              not null,
    digest         bytea             not null,
    kind           text              not null,
    name           text              not null,
    user_id        text,
    deployment_id  uuid,
    scopes         text[]            not null,
    created_at     timestamptz       not null,
    expires_at     timestamptz,
    revoked_at     timestamptz,
    last_used_at   timestamptz,
    lifetime       interval,
    constraint api_keys_pkey primary key (key_id),
    constraint api_keys_account_fkey foreign key (account_id) references agent.accounts,
    constraint api_keys_deployment_fkey foreign key (account_id, deployment_id)
        references agent.deployments (account_id, deployment_id),
    constraint api_keys_id_check check (key_id ~ '^[0-9A-Za-z]{22}$'),
    constraint api_keys_digest_check check (octet_length(digest) = 32),
    constraint api_keys_kind_check check (kind in ('service', 'personal', 'deployment')),
    constraint api_keys_name_check check (name ~ :'display_name'),
    constraint api_keys_user_check
        check ((kind = 'personal') = (user_id is not null) and coalesce(user_id ~ :'display_name', true)),
    constraint api_keys_deployment_check check (kind <> 'deployment' or deployment_id is not null),
    constraint api_keys_scopes_check
        check (scopes <@ array['read', 'run', 'deploy', 'admin'] and coalesce(array_ndims(scopes), 0) = 1
               and cardinality(scopes) = ('read' = any (scopes))::integer + ('run' = any (scopes))::integer
                                         + ('deploy' = any (scopes))::integer + ('admin' = any (scopes))::integer),
    constraint api_keys_expires_check check (expires_at >= created_at),
    constraint api_keys_last_used_check check (extract(epoch from last_used_at)::bigint % 3600 = 0)
);
comment on table agent.api_keys is
    'API keys of accounts. The secret of a key is shown once and stored nowhere: only its digest is here.';
comment on column agent.api_keys.key_id is 'Key ID: the public part of the key, 128 random bits in base62.';
comment on column agent.api_keys.account_id is 'The account whose key it is.';
comment on column agent.api_keys.digest is 'SHA-256 of the secret, which has 256 random bits: no slow hash is needed.';
comment on column agent.api_keys.kind is 'service; personal: of the user of its runs; deployment: for one deployment.';
comment on column agent.api_keys.name is 'Name that its creator gave it; not unique.';
comment on column agent.api_keys.user_id is 'The user of a personal key; null for the other kinds.';
comment on column agent.api_keys.deployment_id is 'The deployment that it is for; null: all of the account.';
comment on column agent.api_keys.scopes is 'The scopes that it grants: read, run, deploy, admin; each once.';
comment on column agent.api_keys.created_at is 'When the key was created.';
comment on column agent.api_keys.expires_at is 'From then on it is not valid; null: never.';
comment on column agent.api_keys.revoked_at is
    'When it was revoked, or was found to have expired: it is not valid whatever the clock says later. Null: never.';
comment on column agent.api_keys.last_used_at is 'The hour of its last use; null: never used.';
comment on column agent.api_keys.lifetime is
    'From its creation to the end that it got then, which rotations do not shorten; null: it got none.';
-- agent.insert_api_key shows these comments to its caller.
comment on constraint api_keys_id_check on agent.api_keys is 'Expected 22 letters and digits as key ID.';
comment on constraint api_keys_digest_check on agent.api_keys is 'Expected 32 bytes as digest.';
comment on constraint api_keys_kind_check on agent.api_keys is '/kind: expected service, personal or deployment.';
comment on constraint api_keys_name_check on agent.api_keys is
    '/name: expected from 1 to 200 characters, not only blank ones, and no control characters, of lines or of text '
    'direction.';
comment on constraint api_keys_user_check on agent.api_keys is
    '/user_id: expected a user for a personal key only, with 1 to 200 characters, not only blank ones, and no control '
    'characters, of lines or of text direction.';
comment on constraint api_keys_deployment_check on agent.api_keys is
    '/deployment: expected a deployment for a key of kind deployment.';
comment on constraint api_keys_scopes_check on agent.api_keys is
    '/scopes: expected one or more of read, run, deploy and admin, each once.';
comment on constraint api_keys_expires_check on agent.api_keys is 'Expected an end that is not in the past.';
comment on constraint api_keys_last_used_check on agent.api_keys is 'Expected a full hour as last use.';

create index api_keys_account_idx on agent.api_keys (account_id, key_id);
comment on index agent.api_keys_account_idx is 'The keys of an account, in the order of lists.';
create index api_keys_valid_idx on agent.api_keys (account_id) where coalesce(revoked_at, '-infinity') = '-infinity';
comment on index agent.api_keys_valid_idx is
    'Counts the keys of an account with a limit. Other conditions do not match this one, whatever the statistics.';
create index api_keys_expires_at_idx on agent.api_keys (expires_at) where expires_at is not null and revoked_at is null;
comment on index agent.api_keys_expires_at_idx is 'Keys that expire, the first one first.';
create index api_keys_revoked_at_idx on agent.api_keys (revoked_at) where revoked_at is not null;
comment on index agent.api_keys_revoked_at_idx is 'Keys to delete, the first one first.';

create table agent.audit_log (
    account_id  uuid         not null,
    audit_id    bigint       not null generated always as identity,
    at          timestamptz  not null,
    actor       text         not null,
    action      text         not null,
    object      text         not null,
    detail      json         not null default '{}',
    constraint audit_log_pkey primary key (account_id, audit_id),
    constraint audit_log_account_fkey foreign key (account_id) references agent.accounts,
    constraint audit_log_action_check check (action ~ '^[a-z_]{1,40}\.[a-z_]{1,40}$')
);
comment on table agent.audit_log is
    'Who did what with an account, its API keys, deployments and limits; written in the transaction of the action. '
    'Changed only by the deletion of its account, which empties detail; agent.sweep_audit_log deletes old rows.';
comment on column agent.audit_log.account_id is 'The account that it concerns.';
comment on column agent.audit_log.audit_id is 'Grows with time; numbers of transactions that failed are missing.';
comment on column agent.audit_log.at is 'When it was done.';
comment on column agent.audit_log.actor is
    'Who did it: `operator` and a role of the database, `key` and a key ID, `sign-up`, or `system`.';
comment on column agent.audit_log.action is 'Kind of the object and verb, as in `key.revoke`.';
comment on column agent.audit_log.object is 'Identifier of the object.';
comment on column agent.audit_log.detail is 'Further facts, never a secret.';

create unique index audit_log_export_key on agent.audit_log (account_id, object) where action = 'account.export';
comment on index agent.audit_log_export_key is 'An export is recorded once, though its beginning may be repeated.';
create index audit_log_at_idx on agent.audit_log (at);
comment on index agent.audit_log_at_idx is 'Rows to delete, the first one first.';

create table agent.account_deletions (
    deletion_id    uuid         not null,
    account_id     uuid         not null,
    digest         bytea,
    actor          text         not null,
    requested_at   timestamptz  not null,
    log_days       integer,
    backup_days    integer,
    deployment_id  uuid,
    step           integer      not null,
    last_audit_id  bigint       not null,
    deleted_rows   jsonb        not null,
    pass_at        timestamptz  not null,
    due_at         timestamptz  not null,
    finished_at    timestamptz,
    constraint account_deletions_pkey primary key (deletion_id),
    constraint account_deletions_account_key unique (account_id),
    constraint account_deletions_digest_key unique (digest),
    constraint account_deletions_account_fkey foreign key (account_id) references agent.accounts,
    constraint account_deletions_digest_check check (octet_length(digest) = 32),
    constraint account_deletions_log_days_check check (log_days between 0 and 3650),
    constraint account_deletions_backup_days_check check (backup_days between 0 and 3650)
);
comment on table agent.account_deletions is
    'Deletions of accounts, also those that have ended: what was deleted, as its proof. The account keeps its row, '
    'without its name, and its audit log, without details.';
comment on column agent.account_deletions.deletion_id is 'Identifier.';
comment on column agent.account_deletions.account_id is 'The account that is deleted; its row stays closed.';
comment on column agent.account_deletions.digest is
    'SHA-256 of the deletion token, with which its customer reads this record; null when an operator deleted it.';
comment on column agent.account_deletions.actor is 'Who deleted it, as an actor of agent.audit_log.';
comment on column agent.account_deletions.requested_at is 'When it was requested; the account may be closed already.';
comment on column agent.account_deletions.log_days is 'For how long logs are kept; null: not known.';
comment on column agent.account_deletions.backup_days is 'For how long backups are kept; null: not known.';
comment on column agent.account_deletions.deployment_id is 'Progress: the deployment whose rows are deleted now.';
comment on column agent.account_deletions.step is 'Progress: the next step of agent.delete_account_piece.';
comment on column agent.account_deletions.last_audit_id is 'The row of the audit log up to which details are empty.';
comment on column agent.account_deletions.deleted_rows is 'Numbers of deleted rows by table.';
comment on column agent.account_deletions.pass_at is 'When the present pass over all tables began.';
comment on column agent.account_deletions.due_at is 'When the next transaction is due.';
comment on column agent.account_deletions.finished_at is 'When nothing of the account was left; null: not yet.';

create index account_deletions_due_idx on agent.account_deletions (due_at) where finished_at is null;
comment on index agent.account_deletions_due_idx is 'Deletions to continue, the one that has waited longest first.';

create table agent.invitations (
    digest         bytea        not null,
    invitation_id  uuid         not null,
    created_by     text         not null,
    created_at     timestamptz  not null,
    expires_at     timestamptz  not null,
    used_at        timestamptz,
    account_id     uuid,
    revoked_at     timestamptz,
    revoked_by     text,
    constraint invitations_pkey primary key (digest),
    constraint invitations_id_key unique (invitation_id),
    constraint invitations_account_fkey foreign key (account_id) references agent.accounts,
    constraint invitations_digest_check check (octet_length(digest) = 32),
    constraint invitations_expires_check check (expires_at >= created_at),
    constraint invitations_used_check check ((used_at is null) = (account_id is null)),
    constraint invitations_revoked_check check (num_nulls(revoked_at, revoked_by) in (0, 2)),
    constraint invitations_end_check check (used_at is null or revoked_at is null)
);
comment on table agent.invitations is
    'Invitations to create an account. The text of one is shown once and stored nowhere: only its digest is here.';
comment on column agent.invitations.digest is 'SHA-256 of its text, which has 256 random bits.';
comment on column agent.invitations.invitation_id is 'Its public identifier, as in agent.audit_log.';
comment on column agent.invitations.created_by is 'Who created it, as an actor of agent.audit_log.';
comment on column agent.invitations.created_at is 'When the invitation was created.';
comment on column agent.invitations.expires_at is 'It is not valid from then on.';
comment on column agent.invitations.used_at is 'When an account was created with it; null: it is not used.';
comment on column agent.invitations.account_id is 'The account that was created with it.';
comment on column agent.invitations.revoked_at is 'When it was revoked, before it was used; null: it was not.';
comment on column agent.invitations.revoked_by is 'Who revoked it, as an actor of agent.audit_log.';
comment on constraint invitations_used_check on agent.invitations is 'An invitation that was used names its account.';

-- Fixed identifiers, the same in every database.
insert into agent.accounts (account_id, name, home_region)
select '00000000-0000-0000-0000-00000000000a', 'default', r.region
  from agent.region r;
insert into agent.deployments (deployment_id, account_id, name)
values ('00000000-0000-0000-0000-000000000001', '00000000-0000-0000-0000-00000000000a', 'default');

create table agent.graphs (
    deployment_id  uuid        not null,
    graph_id       text        not null,
    description    text,
    schemas        json,
    drawing        json,
    error          json,
    runtime        json,
    factory        boolean     not null default false,
    has_subgraphs  boolean     not null default true,
    reported_at    timestamptz not null,
    worker_id      bigint,
    constraint graphs_pkey primary key (deployment_id, graph_id),
    constraint graphs_deployment_fkey foreign key (deployment_id) references agent.deployments
);
comment on table agent.graphs is
    'What runners reported about the graphs of a deployment when they started (`ready` of the runner protocol). '
    'A graph that no configuration has now keeps its row.';
comment on column agent.graphs.deployment_id is 'The deployment that owns the row.';
comment on column agent.graphs.graph_id is 'Name of the graph, unique within the deployment.';
comment on column agent.graphs.description is 'Free text or null.';
comment on column agent.graphs.schemas is
    'Object of JSON schemas: input_schema, output_schema, state_schema, config_schema, context_schema; null when '
    'none were reported.';
comment on column agent.graphs.drawing is 'Object with nodes and edges; null when none was reported.';
comment on column agent.graphs.error is 'Object with error and message if it could not be loaded; else null.';
comment on column agent.graphs.runtime is
    'Object with the language, the library and their versions; null when none was reported.';
comment on column agent.graphs.factory is 'Whether it is made for each run: its assistants differ.';
comment on column agent.graphs.has_subgraphs is 'Whether the graph may have subgraphs.';
comment on column agent.graphs.reported_at is 'When a runner first reported this content.';
comment on column agent.graphs.worker_id is 'The worker (a start of a supervisor) whose runners reported it last.';

create table agent.assistants (
    deployment_id  uuid        not null,
    assistant_id   uuid        not null,
    graph_id       text        not null,
    name           text        not null,
    description    text,
    config         jsonb       not null default '{}',
    context        json        not null default '{}',
    metadata       jsonb       not null default '{}',
    version        integer     not null default 1,
    last_version   integer     not null default 1,
    is_system      boolean     not null default false,
    created_at     timestamptz not null,
    updated_at     timestamptz not null,
    constraint assistants_pkey primary key (deployment_id, assistant_id),
    constraint assistants_deployment_fkey foreign key (deployment_id) references agent.deployments,
    constraint assistants_version_check check (version between 1 and last_version)
);
comment on table agent.assistants is
    'A graph with its settings: those of its current version. The system assistant of a graph is created when a '
    'supervisor that executes the graph starts, and stays when no configuration has the graph: searches '
    'leave it out.';
comment on column agent.assistants.deployment_id is 'The deployment that owns the row.';
comment on column agent.assistants.assistant_id is 'Identifier; UUIDv5 of the graph name for system assistants.';
comment on column agent.assistants.graph_id is 'The graph that it runs.';
comment on column agent.assistants.name is 'Name for display; not unique.';
comment on column agent.assistants.description is 'Free text or null.';
comment on column agent.assistants.config is 'Defaults for the config of each run.';
comment on column agent.assistants.context is 'Defaults for the context of each run.';
comment on column agent.assistants.metadata is 'Merged into the metadata of each run''s config.';
comment on column agent.assistants.version is 'Number of the current version, from 1.';
comment on column agent.assistants.last_version is 'Highest number of a version.';
comment on column agent.assistants.is_system is
    'Whether it is the system assistant of its graph: it is not deleted and keeps its graph.';
comment on column agent.assistants.created_at is 'When the assistant was created.';
comment on column agent.assistants.updated_at is 'When it was last changed.';

create table agent.assistant_versions (
    deployment_id  uuid        not null,
    assistant_id   uuid        not null,
    version        integer     not null,
    graph_id       text        not null,
    name           text        not null,
    description    text,
    config         jsonb       not null,
    context        json        not null,
    metadata       jsonb       not null,
    created_at     timestamptz not null,
    constraint assistant_versions_pkey primary key (deployment_id, assistant_id, version),
    constraint assistant_versions_assistant_fkey foreign key (deployment_id, assistant_id)
        references agent.assistants on delete cascade
);
comment on table agent.assistant_versions is
    'An assistant as it was after its creation and after each update: the newest 1,000. Rows do not change.';
comment on column agent.assistant_versions.deployment_id is 'The deployment that owns the row.';
comment on column agent.assistant_versions.assistant_id is 'The assistant.';
comment on column agent.assistant_versions.version is 'Number of the version, from 1.';
comment on column agent.assistant_versions.graph_id is 'The graph that the assistant runs in this version.';
comment on column agent.assistant_versions.name is 'Name for display in this version; not unique.';
comment on column agent.assistant_versions.description is 'Free text of this version, or null.';
comment on column agent.assistant_versions.config is 'Defaults for the config of each run in this version.';
comment on column agent.assistant_versions.context is 'Defaults for the context of each run in this version.';
comment on column agent.assistant_versions.metadata is
    'Merged into the metadata of each run''s config in this version.';
comment on column agent.assistant_versions.created_at is 'When the version was made.';

create table agent.store_items (
    deployment_id  uuid                not null,
    namespace      text[] collate "C"  not null,
    key            text collate "C"    not null,
    value          jsonb               not null,
    value_bytes    integer             not null,
    ttl            interval,
    expires_at     timestamptz,
    created_at     timestamptz         not null,
    updated_at     timestamptz         not null,
    constraint store_items_pkey primary key (deployment_id, namespace, key),
    constraint store_items_ttl_check check ((ttl is null) = (expires_at is null))
);
comment on constraint store_items_pkey on agent.store_items is
    'The items below a prefix of labels are one range of it, since labels are compared byte by byte.';
comment on table agent.store_items is
    'Data of a deployment that outlives threads: an object under a namespace and a key.';
comment on column agent.store_items.deployment_id is 'The deployment that owns the row.';
comment on column agent.store_items.namespace is 'Labels, the outermost first: agent.read_namespace checks them.';
comment on column agent.store_items.key is 'Unique in its namespace.';
comment on column agent.store_items.value is 'An object; searched.';
comment on column agent.store_items.value_bytes is 'Length of the value as text.';
comment on column agent.store_items.ttl is 'How long it is kept after a put or a read; null: for ever.';
comment on column agent.store_items.expires_at is
    'From then on it is no longer read, and agent.sweep_store deletes it; null: never.';
comment on column agent.store_items.created_at is 'When it was put first.';
comment on column agent.store_items.updated_at is 'When it was put last; each put of an item has a later one.';

create index store_items_expires_at_idx on agent.store_items (expires_at) where expires_at is not null;
comment on index agent.store_items_expires_at_idx is 'Items that expire, the first one first.';

insert into agent.schema_version (version, name) values (1, 'create_accounts');
