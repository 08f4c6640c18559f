-- SPDX-License-Identifier: Apache-2.0
-- Purpose:  workers with their leases, and the outbox of the webhooks that they deliver.
-- Affects:  new objects only.
-- Locks:    none on existing tables.
-- Breaking: no.
set local lock_timeout = '2s';

create table agent.workers (
    worker_id       bigint      not null default (extract(epoch from clock_timestamp()) * 1000000)::bigint,
    node_name       text        not null,
    host_boot_id    text        not null,
    pid             integer     not null,
    pid_start       bigint      not null,
    slots           integer     not null,
    deployment_ids  uuid[]      not null,
    graph_ids       text[]      not null,
    failing_deployment_ids uuid[] not null default '{}',
    failing_graph_ids text[]    not null default '{}',
    state           text        not null default 'live',
    lease_until     timestamptz not null,
    started_at      timestamptz not null,
    dead_at         timestamptz,
    constraint workers_pkey primary key (worker_id),
    constraint workers_state_check check (state in ('live', 'draining', 'dead')),
    constraint workers_dead_check check ((state = 'dead') = (dead_at is not null))
) with (fillfactor = 50);
comment on table agent.workers is
    'One row per start of a supervisor, with one lease for all of its runs. Renewed every few seconds; no '
    'index on what a renewal changes. Not deployment data: a worker serves all deployments.';
comment on column agent.workers.worker_id is
    'Identifier, new for each start: microseconds since 1970. Not of a sequence, which the restore of a backup sets '
    'back: a supervisor that lives on and one that is started would be the same worker.';
comment on column agent.workers.node_name is 'Host that it runs on.';
comment on column agent.workers.host_boot_id is
    'Boot of that host: a pid means nothing after a reboot.';
comment on column agent.workers.pid is 'Process id.';
comment on column agent.workers.pid_start is
    'Start time of the process, field 22 of /proc/PID/stat: pids are reused.';
comment on column agent.workers.slots is 'Runs that it executes at once.';
comment on column agent.workers.deployment_ids is
    'The deployment of each graph that it executes.';
comment on column agent.workers.graph_ids is 'The names of those graphs, in the same order.';
comment on column agent.workers.failing_deployment_ids is
    'The deployment of each graph that it cannot execute now, since no runner of its pool starts.';
comment on column agent.workers.failing_graph_ids is 'The names of those graphs, in the same order.';
comment on column agent.workers.state is 'live, draining (gets no new runs) or dead (final).';
comment on column agent.workers.lease_until is
    'Other hosts may mark it dead 5 seconds after this, by the database''s clock.';
comment on column agent.workers.started_at is 'When it registered.';
comment on column agent.workers.dead_at is 'When it was marked dead.';

create table agent.webhook_outbox (
    deployment_id  uuid        not null,
    run_id         uuid        not null,
    thread_id      uuid        not null,
    url            text        not null,
    body           text        not null,
    body_bytes     integer     not null,
    attempts       smallint    not null default 0,
    worker_id      bigint,
    due_at         timestamptz not null,
    created_at     timestamptz not null,
    last_error     text,
    dead_at        timestamptz,
    receiver       bigint      not null generated always as
        (hashtextextended(lower(coalesce(substring(url from '://(?:[^/?#]*@)?([^/?#]*)'), '')), 0)) stored,
    constraint webhook_outbox_pkey primary key (run_id, deployment_id),
    constraint webhook_outbox_dead_check
        check (dead_at is null or (worker_id is null and last_error is not null))
) with (
    fillfactor = 70,
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 2000,
    autovacuum_analyze_scale_factor = 0,
    autovacuum_analyze_threshold = 5000,
    vacuum_truncate = off
);
comment on constraint webhook_outbox_pkey on agent.webhook_outbox is
    'At most one delivery per run. run_id comes first, as in agent.runs.';
comment on table agent.webhook_outbox is
    'One row per run with a webhook, inserted in the transaction that ends the run and complete in '
    'itself: run and thread may be deleted before the delivery. Deleted when delivered; marked dead '
    'and kept for a while when given up.';
comment on column agent.webhook_outbox.deployment_id is 'The deployment that owns the row.';
comment on column agent.webhook_outbox.run_id is
    'The run that ended; also the identifier of the delivery, the same at each attempt.';
comment on column agent.webhook_outbox.thread_id is 'The thread of the run.';
comment on column agent.webhook_outbox.url is 'URL to call, as the client sent it.';
comment on column agent.webhook_outbox.body is
    'JSON object to send; each attempt adds webhook_sent_at.';
comment on column agent.webhook_outbox.body_bytes is
    'Length of the body; a claim is limited in bytes.';
comment on column agent.webhook_outbox.attempts is
    'Attempts that have begun. A failure counts only under the number of the current attempt.';
comment on column agent.webhook_outbox.worker_id is 'Worker that makes the current attempt, null for none.';
comment on column agent.webhook_outbox.due_at is
    'When the next attempt may begin; during an attempt the end of its lease.';
comment on column agent.webhook_outbox.created_at is 'When the run ended.';
comment on column agent.webhook_outbox.last_error is 'Why the last attempt failed.';
comment on column agent.webhook_outbox.dead_at is 'When it was given up.';
comment on column agent.webhook_outbox.receiver is
    'Hash of the host and port of the URL. Receivers of a deployment with equal hashes would share their slots.';

create index webhook_outbox_due on agent.webhook_outbox (due_at) where dead_at is null;
comment on index agent.webhook_outbox_due is 'Shows whether a webhook is due.';
create index webhook_outbox_deployment on agent.webhook_outbox (deployment_id, due_at) where dead_at is null;
comment on index agent.webhook_outbox_deployment is 'Scanned by claim_webhooks, deployment by deployment.';
create index webhook_outbox_receiver on agent.webhook_outbox (deployment_id, receiver, due_at) where dead_at is null;
comment on index agent.webhook_outbox_receiver is 'Scanned by lock_webhooks, receiver by receiver.';
create index webhook_outbox_held on agent.webhook_outbox (worker_id) where worker_id is not null;
comment on index agent.webhook_outbox_held is 'Finds the deliveries of a worker.';
create index webhook_outbox_dead on agent.webhook_outbox (dead_at) where dead_at is not null;
comment on index agent.webhook_outbox_dead is 'Scanned by sweep_webhooks.';
create index webhook_outbox_dead_deployment on agent.webhook_outbox (deployment_id, dead_at) where dead_at is not null;
comment on index agent.webhook_outbox_dead_deployment is 'Scanned by the deletion of an account.';

insert into agent.schema_version (version, name) values (4, 'create_workers');
