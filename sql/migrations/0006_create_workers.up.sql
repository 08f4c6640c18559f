-- SPDX-License-Identifier: Apache-2.0
-- Purpose:  workers: one row and one lease per incarnation of a supervisor, not one per run.
-- Affects:  new objects only.
-- Locks:    none on existing tables.
-- Breaking: no.
set local lock_timeout = '2s';

create table agent.workers (
    worker_id     bigint      not null generated always as identity,
    node_name     text        not null,
    host_boot_id  text        not null,
    pid           integer     not null,
    pid_start     bigint      not null,
    slots         integer     not null,
    graph_ids     text[]      not null,
    state         smallint    not null default 1,
    lease_until   timestamptz not null,
    started_at    timestamptz not null,
    dead_at       timestamptz,
    constraint workers_pkey primary key (worker_id),
    constraint workers_state_check check (state in (1, 2, 3)),
    constraint workers_dead_check check ((state = 3) = (dead_at is not null))
) with (fillfactor = 50);
comment on table agent.workers is
    'Incarnations of supervisors. Renewed every few seconds; no index on what a renewal changes. '
    'Not account data: a worker serves all accounts.';
comment on column agent.workers.worker_id is 'Identifier, new for each start.';
comment on column agent.workers.node_name is 'Host that it runs on.';
comment on column agent.workers.host_boot_id is
    'Boot of that host: a pid means nothing after a reboot.';
comment on column agent.workers.pid is 'Process id.';
comment on column agent.workers.pid_start is
    'Start time of the process, field 22 of /proc/PID/stat: pids are reused.';
comment on column agent.workers.slots is 'Runs that it executes at once.';
comment on column agent.workers.graph_ids is 'Graphs that it executes.';
comment on column agent.workers.state is '1 live, 2 draining, 3 dead.';
comment on column agent.workers.lease_until is
    'Other nodes may bury it after this, by the database''s clock.';
comment on column agent.workers.started_at is 'When it registered.';
comment on column agent.workers.dead_at is 'When it was buried.';

insert into agent.schema_version (version, name) values (6, 'create_workers');
