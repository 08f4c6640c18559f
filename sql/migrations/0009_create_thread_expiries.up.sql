-- SPDX-License-Identifier: Apache-2.0
-- Purpose:  runs without a thread of the client's: a hidden thread, deleted some time after its run.
-- Affects:  agent.threads, agent.runs, agent.run_request; new table agent.thread_expiries.
-- Locks:    ACCESS EXCLUSIVE on agent.threads and agent.runs, for a moment: no row is rewritten.
-- Breaking: no.
set local lock_timeout = '2s';

alter table agent.threads add column temporary boolean not null default false;
comment on column agent.threads.temporary is
    'Made for one run without a thread; deleted some time after it has no unfinished run.';
alter table agent.runs add column temporary boolean not null default false;
comment on column agent.runs.temporary is 'Copy of threads.temporary.';

alter type agent.run_request add attribute on_completion text;
comment on column agent.run_request.on_completion is
    'keep leaves the thread of a run that was created without one.';

create table agent.thread_expiries (
    account_id  uuid        not null,
    thread_id   uuid        not null,
    expires_at  timestamptz not null,
    constraint thread_expiries_pkey primary key (account_id, thread_id)
);
comment on table agent.thread_expiries is
    'Threads that will be deleted. A table of its own, so that threads and runs need no index on '
    'what changes at the end of each run.';
comment on column agent.thread_expiries.account_id is 'Owner.';
comment on column agent.thread_expiries.thread_id is 'The thread.';
comment on column agent.thread_expiries.expires_at is 'When it may be deleted.';

create index thread_expiries_due on agent.thread_expiries (expires_at);
comment on index agent.thread_expiries_due is 'What agent.expire_threads looks for.';

insert into agent.schema_version (version, name) values (9, 'create_thread_expiries');
