-- SPDX-License-Identifier: Apache-2.0
-- Purpose:  the schema, its version, accounts, their deployments, graphs, assistants and store items.
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
comment on table agent.accounts is 'Owners of deployments.';
comment on column agent.accounts.account_id is 'Identifier.';
comment on column agent.accounts.name is 'Display name, unique.';
comment on column agent.accounts.created_at is 'When the account was created.';

create table agent.deployments (
    deployment_id  uuid        not null,
    account_id     uuid        not null,
    name           text        not null,
    created_at     timestamptz not null default clock_timestamp(),
    constraint deployments_pkey primary key (deployment_id),
    constraint deployments_name_key unique (account_id, name),
    constraint deployments_account_fkey foreign key (account_id) references agent.accounts,
    constraint deployments_name_check check (name ~ '^[a-z0-9][a-z0-9_-]{0,62}$')
);
comment on table agent.deployments is
    'Agent servers. Each is a data space: no function reads or changes rows of another deployment. Hot '
    'tables carry deployment_id without a foreign key to this table: a key check would lock the one row '
    'of a busy deployment in every transaction of all its clients.';
comment on column agent.deployments.deployment_id is 'Identifier; part of every key of the data.';
comment on column agent.deployments.account_id is 'Owner.';
comment on column agent.deployments.name is
    'Name, unique within the account; fits into a label of a host name.';
comment on column agent.deployments.created_at is 'When the deployment was created.';

-- Fixed identifiers, the same in every database.
insert into agent.accounts (account_id, name)
values ('00000000-0000-0000-0000-00000000000a', 'default');
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
    constraint graphs_pkey primary key (deployment_id, graph_id),
    constraint graphs_deployment_fkey foreign key (deployment_id) references agent.deployments
);
comment on table agent.graphs is
    'What runners reported about the graphs of a deployment when they started (`ready` of the runner protocol). '
    'A graph that no configuration has any longer keeps its row.';
comment on column agent.graphs.deployment_id is 'Its deployment.';
comment on column agent.graphs.graph_id is 'Name of the graph, unique within the deployment.';
comment on column agent.graphs.description is 'Free text or null.';
comment on column agent.graphs.schemas is
    'Object of JSON schemas: input_schema, output_schema, state_schema, config_schema, context_schema; null when '
    'none were reported.';
comment on column agent.graphs.drawing is 'Object with nodes and edges; null when none was reported.';
comment on column agent.graphs.error is
    'Object with error and message when the graph could not be loaded; else null.';
comment on column agent.graphs.runtime is
    'Object with the language, the library and their versions; null when none was reported.';
comment on column agent.graphs.factory is
    'Whether the graph is made for each run, from its config: its assistants differ in schemas and drawing.';
comment on column agent.graphs.has_subgraphs is 'Whether the graph may have subgraphs.';
comment on column agent.graphs.reported_at is 'When a runner first reported this content.';

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
    'runner first reports the graph, and stays when no configuration has the graph any longer: searches leave it out.';
comment on column agent.assistants.deployment_id is 'Its deployment.';
comment on column agent.assistants.assistant_id is
    'Identifier; UUIDv5 of the graph name for system assistants.';
comment on column agent.assistants.graph_id is 'The graph that it runs.';
comment on column agent.assistants.name is 'Display name.';
comment on column agent.assistants.description is 'Free text or null.';
comment on column agent.assistants.config is 'Defaults for the config of each run.';
comment on column agent.assistants.context is 'Defaults for the context of each run.';
comment on column agent.assistants.metadata is 'Merged into the metadata of each run''s config.';
comment on column agent.assistants.version is 'Number of the current version, from 1.';
comment on column agent.assistants.last_version is 'Highest number of a version.';
comment on column agent.assistants.is_system is
    'Whether it is the system assistant of its graph: it is not deleted and keeps its graph.';
comment on column agent.assistants.created_at is 'When it was created.';
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
comment on column agent.assistant_versions.deployment_id is 'Its deployment.';
comment on column agent.assistant_versions.assistant_id is 'The assistant.';
comment on column agent.assistant_versions.version is 'Number of the version, from 1.';
comment on column agent.assistant_versions.graph_id is 'As in agent.assistants.';
comment on column agent.assistant_versions.name is 'As in agent.assistants.';
comment on column agent.assistant_versions.description is 'As in agent.assistants.';
comment on column agent.assistant_versions.config is 'As in agent.assistants.';
comment on column agent.assistant_versions.context is 'As in agent.assistants.';
comment on column agent.assistant_versions.metadata is 'As in agent.assistants.';
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
comment on column agent.store_items.deployment_id is 'Its deployment.';
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
