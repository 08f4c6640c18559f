-- SPDX-License-Identifier: Apache-2.0
-- Purpose:  the outbox of webhooks: what is to be told to whom, from the end of a run until it was told.
-- Affects:  new objects only.
-- Locks:    none on existing tables.
-- Breaking: no.
set local lock_timeout = '2s';

create table agent.webhook_outbox (
    account_id       uuid        not null,
    run_id           uuid        not null,
    thread_id        uuid        not null,
    url              text        not null,
    body             text        not null,
    body_bytes       integer     not null,
    attempts         smallint    not null default 0,
    worker_id        bigint,
    due_at           timestamptz not null,
    created_at       timestamptz not null,
    last_error       text,
    dead_at          timestamptz,
    constraint webhook_outbox_pkey primary key (run_id, account_id),
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
    'One delivery per run, as a database rule. run_id comes first, as in agent.runs.';
comment on table agent.webhook_outbox is
    'One row per run that has a webhook, written in the transaction that ends the run and complete '
    'in itself: run and thread may be deleted meanwhile. Deleted when the receiver has taken it; '
    'what no receiver took stays for a while, marked as dead.';
comment on column agent.webhook_outbox.account_id is 'Owner.';
comment on column agent.webhook_outbox.run_id is
    'The run that ended; also the identifier of the delivery, the same at each attempt.';
comment on column agent.webhook_outbox.thread_id is 'Its thread.';
comment on column agent.webhook_outbox.url is 'Address to call, as the client gave it.';
comment on column agent.webhook_outbox.body is
    'JSON object to send, but for webhook_sent_at, which each attempt adds.';
comment on column agent.webhook_outbox.body_bytes is
    'Length of the body: a claim takes no more than its worker has room for.';
comment on column agent.webhook_outbox.attempts is
    'Attempts that have begun. A worker''s failure counts only under the number it was given.';
comment on column agent.webhook_outbox.worker_id is 'Worker that makes an attempt at the moment.';
comment on column agent.webhook_outbox.due_at is
    'When the next attempt may begin; during one, when it is given up for lost.';
comment on column agent.webhook_outbox.created_at is 'When the run ended.';
comment on column agent.webhook_outbox.last_error is 'Why the last attempt failed.';
comment on column agent.webhook_outbox.dead_at is 'When it was given up.';

create index webhook_outbox_due on agent.webhook_outbox (due_at) where dead_at is null;
comment on index agent.webhook_outbox_due is 'What claim_webhooks scans.';
create index webhook_outbox_held on agent.webhook_outbox (worker_id) where worker_id is not null;
comment on index agent.webhook_outbox_held is 'The deliveries of a worker, for its burial.';
create index webhook_outbox_dead on agent.webhook_outbox (dead_at) where dead_at is not null;
comment on index agent.webhook_outbox_dead is 'What sweep_webhooks scans.';

insert into agent.schema_version (version, name) values (10, 'create_webhook_outbox');
