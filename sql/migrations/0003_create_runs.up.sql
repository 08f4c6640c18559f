-- SPDX-License-Identifier: Apache-2.0
-- Purpose:  runs: the record, the queue row while a run is unfinished, the events by day, and usage.
-- Affects:  new objects only.
-- Locks:    none on existing tables.
-- Breaking: no.
set local lock_timeout = '2s';

create domain agent.run_status as text check (value in ('pending', 'success', 'interrupted', 'error', 'timeout'));
comment on domain agent.run_status is 'The status of a run, final but for pending.';
create domain agent.multitask_strategy as text check (value in ('reject', 'enqueue', 'interrupt', 'rollback'));
comment on domain agent.multitask_strategy is 'What a new run does to unfinished runs of its thread.';

create table agent.runs (
    deployment_id        uuid        not null,
    run_id               uuid        not null,
    thread_id            uuid        not null,
    thread_seq           bigint      not null,
    assistant_id         uuid        not null,
    graph_id             text        not null,
    status               agent.run_status not null default 'pending',
    multitask_strategy   agent.multitask_strategy not null,
    metadata             jsonb       not null,
    input                json,
    command              json,
    config               jsonb       not null,
    context              json,
    webhook              text,
    stream_mode          json        not null,
    stream_subgraphs     boolean     not null,
    stream_resumable     boolean     not null,
    feedback_keys        json,
    feedback             json,
    interrupt_before     json,
    interrupt_after      json,
    durability           text,
    strict_resume        boolean     not null default false,
    start_checkpoint_id  uuid,
    start_map            jsonb,
    last_checkpoint_id   uuid,
    last_event_seq       bigint,
    events_bucket        date        not null,
    error                json,
    cancel_reason        text,
    idempotency_key      text,
    request_hash         text,
    temporary            boolean     not null default false,
    created_at           timestamptz not null,
    started_at           timestamptz,
    updated_at           timestamptz not null,
    finished_at          timestamptz,
    constraint runs_pkey primary key (run_id, deployment_id),
    constraint runs_thread_seq_key unique (thread_id, deployment_id, thread_seq),
    constraint runs_finished_check check ((finished_at is null) = (status = 'pending')),
    constraint runs_last_event_seq_check check ((finished_at is null) = (last_event_seq is null))
) with (fillfactor = 85);
comment on constraint runs_pkey on agent.runs is
    'run_id comes first: it alone finds the row; deployment_id separates the deployments.';
comment on constraint runs_thread_seq_key on agent.runs is 'Lists the runs of a thread in their order.';
comment on table agent.runs is
    'The record of a run, kept after its end. Updated once, when the run becomes final.';
comment on column agent.runs.deployment_id is 'The deployment that owns the row.';
comment on column agent.runs.run_id is
    'Identifier, UUIDv7: rows and index entries arrive in order.';
comment on column agent.runs.thread_id is 'The thread it runs on.';
comment on column agent.runs.thread_seq is
    'Number within the thread, assigned under the lock of the thread: the order in which '
    'creations committed.';
comment on column agent.runs.assistant_id is 'Its assistant.';
comment on column agent.runs.graph_id is 'The graph of the assistant at creation.';
comment on column agent.runs.status is 'pending until the one final status is written.';
comment on column agent.runs.multitask_strategy is
    'How its creation treated other unfinished runs of the thread.';
comment on column agent.runs.metadata is 'The request''s metadata.';
comment on column agent.runs.input is 'The request''s input, the client''s exact text.';
comment on column agent.runs.command is 'The request''s command.';
comment on column agent.runs.config is
    'Assistant''s and request''s config merged, with metadata and configurable complete.';
comment on column agent.runs.context is 'Assistant''s and request''s context merged.';
comment on column agent.runs.webhook is 'URL to call at the end, or null.';
comment on column agent.runs.stream_mode is 'Array of the requested stream modes.';
comment on column agent.runs.stream_subgraphs is 'Whether events of subgraphs were requested.';
comment on column agent.runs.stream_resumable is
    'Whether a resumable stream was requested; events are stored in any case.';
comment on column agent.runs.feedback_keys is 'The request''s feedback_keys.';
comment on column agent.runs.feedback is
    'Object of feedback addresses by key; null when none was requested or none is configured.';
comment on column agent.runs.interrupt_before is 'Nodes to stop before, "*" or null.';
comment on column agent.runs.interrupt_after is 'Nodes to stop after, "*" or null.';
comment on column agent.runs.durability is 'The request''s durability or null.';
comment on column agent.runs.strict_resume is
    'Whether a resume that answers no interrupt which waits is an error.';
comment on column agent.runs.start_checkpoint_id is
    'Checkpoint that the request names as its start, or null for the head.';
comment on column agent.runs.start_map is
    'Object: namespace of a subgraph -> its checkpoint that the request names as its start; null for none.';
comment on column agent.runs.last_checkpoint_id is
    'Last checkpoint that the run saved; set at its end.';
comment on column agent.runs.last_event_seq is
    'Number of its last event, -1 for none; set at its end.';
comment on column agent.runs.events_bucket is
    'Day partition of its events: the day of its first attempt, before that the day of its creation.';
comment on column agent.runs.error is 'Object with error and message when the run failed.';
comment on column agent.runs.cancel_reason is
    'Why it was stopped (agent.render_cancel_reason); null unless a cancel or another run ended it.';
comment on column agent.runs.idempotency_key is 'Key of the creating request, or null.';
comment on column agent.runs.request_hash is
    'Hash of the creating request, compared when the key is used again.';
comment on column agent.runs.temporary is 'Copy of threads.temporary.';
comment on column agent.runs.created_at is 'When the run was created.';
comment on column agent.runs.started_at is 'When its first attempt was claimed; set at its end.';
comment on column agent.runs.updated_at is 'When the record was last changed.';
comment on column agent.runs.finished_at is 'When it became final.';

create unique index runs_idempotency_key on agent.runs (deployment_id, idempotency_key)
    where idempotency_key is not null;
comment on index agent.runs_idempotency_key is 'One run per key and deployment.';

create sequence agent.run_ready_seq as bigint;
comment on sequence agent.run_ready_seq is
    'Numbers runs in the order in which they became ready. No cache: the low-water mark of a worker '
    'relies on numbers close to that order.';

create domain agent.queue_state as text check (value in ('blocked', 'ready', 'leased'));
comment on domain agent.queue_state is 'What an unfinished run waits for.';
create domain agent.cancel_action as text check (value in ('interrupt', 'rollback'));
comment on domain agent.cancel_action is 'How a run is to be cancelled.';
create domain agent.call_op as text check (value in ('update', 'describe'));
comment on domain agent.call_op is 'What a call does.';
create domain agent.max_concurrent_runs as smallint check (value > 0);
comment on domain agent.max_concurrent_runs is 'A number of runs that one runner executes at once.';

create table agent.run_queue (
    deployment_id       uuid        not null,
    run_id              uuid        not null,
    thread_id           uuid        not null,
    thread_seq          bigint      not null,
    graph_id            text        not null,
    state               agent.queue_state not null,
    cancel              agent.cancel_action,
    cancel_reason       text,
    attempts            smallint    not null default 0,
    max_attempts        smallint    not null default 3,
    epoch               integer     not null default 0,
    batch_no            integer     not null default 0,
    worker_id           bigint,
    ready_seq           bigint,
    not_before          timestamptz,
    events_bucket       date        not null,
    base_checkpoint_id  uuid,
    started_at          timestamptz,
    request_bytes       integer,
    max_shared          agent.max_concurrent_runs,
    quarantines_passed       smallint    not null default 0,
    op                  agent.call_op,
    constraint run_queue_pkey primary key (run_id, deployment_id),
    constraint run_queue_ready_check check (state <> 'ready' or ready_seq is not null),
    constraint run_queue_leased_check check ((state = 'leased') = (worker_id is not null))
) with (
    fillfactor = 70,
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 2000,
    autovacuum_vacuum_cost_delay = 0,
    autovacuum_analyze_scale_factor = 0,
    autovacuum_analyze_threshold = 5000,
    vacuum_truncate = off
);
comment on constraint run_queue_pkey on agent.run_queue is
    'run_id comes first, as in agent.runs.';
comment on table agent.run_queue is
    'One narrow row per unfinished run or call; deleted when it becomes final, so that the table '
    'stays small.';
comment on column agent.run_queue.deployment_id is 'The deployment that owns the row.';
comment on column agent.run_queue.run_id is 'The run, or the call, that waits or executes.';
comment on column agent.run_queue.thread_id is 'Its thread; the id of the call when it has no thread.';
comment on column agent.run_queue.thread_seq is
    'Number within the thread; blocked runs are promoted in this order.';
comment on column agent.run_queue.graph_id is 'Graph to execute; workers claim by deployment and graph.';
comment on column agent.run_queue.state is
    'blocked by an earlier run of the thread, ready, or leased to a worker.';
comment on column agent.run_queue.cancel is
    'Requested cancel of a leased run, interrupt or rollback; null for none. Applied at its end.';
comment on column agent.run_queue.cancel_reason is 'Why the first cancel was requested; null without one.';
comment on column agent.run_queue.attempts is 'Attempts that count, the current one included.';
comment on column agent.run_queue.max_attempts is
    'A run whose attempts are lost this many times ends in error.';
comment on column agent.run_queue.epoch is
    'Number of the lease. Every write of a worker is conditional on it: the fence.';
comment on column agent.run_queue.batch_no is
    'Number of the last batch with more than events that was saved under the lease; 0: none. See agent.fence_batch.';
comment on column agent.run_queue.worker_id is 'Holder of the lease; null when not leased.';
comment on column agent.run_queue.ready_seq is 'New number each time the run becomes ready.';
comment on column agent.run_queue.not_before is
    'Delays a ready run; claim_runs clears it when it is due.';
comment on column agent.run_queue.events_bucket is 'Copy of runs.events_bucket.';
comment on column agent.run_queue.base_checkpoint_id is
    'Head of the thread when the run became ready; a rollback restores it.';
comment on column agent.run_queue.started_at is 'When its first attempt was claimed.';
comment on column agent.run_queue.request_bytes is
    'Length of the request''s part of the start message; null when it was not measured.';
comment on column agent.run_queue.max_shared is
    'Runs that its runner may execute at once, itself included, after it was on a runner that died; null for any '
    'number. A run with a limit is quarantined.';
comment on column agent.run_queue.quarantines_passed is
    'How often it has passed quarantine; the next quarantine takes longer.';
comment on column agent.run_queue.op is
    'Operation of a call, whose record is in agent.calls and which has no events; null for a run.';

create unique index run_queue_one_active on agent.run_queue (deployment_id, thread_id)
    where state in ('ready', 'leased') and (op is null or op = 'update');
comment on index agent.run_queue_one_active is
    'At most one active run per thread, as a database rule. A call that changes nothing needs no turn.';
create index run_queue_ready on agent.run_queue (deployment_id, graph_id, ready_seq)
    where state = 'ready' and not_before is null and max_shared is null;
comment on index agent.run_queue_ready is
    'Scanned by claim_runs; without blocked, delayed and leased runs.';
create index run_queue_quarantined on agent.run_queue (deployment_id, graph_id, ready_seq)
    where state = 'ready' and not_before is null and max_shared is not null;
comment on index agent.run_queue_quarantined is
    'The same for quarantined runs.';
create index run_queue_delayed on agent.run_queue (not_before)
    where state = 'ready' and not_before is not null;
comment on index agent.run_queue_delayed is 'Ready runs with a delay.';
create index run_queue_blocked on agent.run_queue (deployment_id, thread_id, thread_seq)
    where state = 'blocked';
comment on index agent.run_queue_blocked is 'Finds the next run of a thread.';
create index run_queue_leased on agent.run_queue (worker_id) where worker_id is not null;
comment on index agent.run_queue_leased is
    'Finds the runs of a worker.';

create table agent.calls (
    deployment_id  uuid        not null,
    call_id        uuid        not null,
    thread_id      uuid        not null,
    graph_id       text        not null,
    op             text        not null,
    arguments      json        not null,
    config         jsonb       not null,
    checkpoint_ns  text        not null default '',
    checkpoint_id  uuid,
    thread_status  text,
    context        json        not null default '{}',
    description_key text,
    code           text,
    body           text,
    epoch          integer,
    worker_id      bigint,
    created_at     timestamptz not null,
    deadline_at    timestamptz not null,
    finished_at    timestamptz,
    constraint calls_pkey primary key (call_id, deployment_id),
    constraint calls_op_check check (op in ('update', 'describe')),
    constraint calls_finished_check check ((finished_at is null) = (code is null))
);
comment on constraint calls_pkey on agent.calls is
    'call_id comes first, as in agent.runs.';
comment on table agent.calls is
    'What a request asks of the code of a graph. While it is unfinished it has a row in agent.run_queue, '
    'under its id: it is leased, fenced and saved like a run, and an update holds the thread like one. The request '
    'waits for the result; agent.sweep_calls deletes the row.';
comment on column agent.calls.deployment_id is 'The deployment that owns the row.';
comment on column agent.calls.call_id is 'Identifier, UUIDv7; run_id in agent.run_queue and agent.checkpoints.';
comment on column agent.calls.thread_id is 'Its thread; the id of the call when it has no thread.';
comment on column agent.calls.graph_id is 'The graph whose code is called.';
comment on column agent.calls.op is
    'update: applies values to the state of the thread; describe: the schemas, the drawing or the subgraphs of the '
    'graph.';
comment on column agent.calls.arguments is
    'Object of the arguments (PROTOCOL.md); empty once the call is finished.';
comment on column agent.calls.config is 'As runs.config.';
comment on column agent.calls.checkpoint_ns is
    'Namespace of the graph whose state an update changes; empty for the root graph.';
comment on column agent.calls.checkpoint_id is
    'Checkpoint that the request names as its start, or null for the head.';
comment on column agent.calls.thread_status is
    'Status of the thread before the update; a failure restores error. Null for a call that creates the '
    'thread, and for one that changes nothing.';
comment on column agent.calls.context is 'As runs.context.';
comment on column agent.calls.description_key is
    'MD5 of the assistant, its version and the arguments of a description, which serves the same request while it is '
    'made and for a minute.';
comment on column agent.calls.code is
    'Word of the result, as the functions of the API return it; null while the call is unfinished.';
comment on column agent.calls.body is 'The response, or the text of the error.';
comment on column agent.calls.epoch is 'Lease under which it ended; null while it is unfinished.';
comment on column agent.calls.worker_id is
    'Worker that reported its end, as in agent.usage_events; null when the time or a loss ended it.';
comment on column agent.calls.created_at is 'When the call was created.';
comment on column agent.calls.deadline_at is 'The request waits until then, and ends the call.';
comment on column agent.calls.finished_at is 'When it got its result.';

create index calls_unfinished on agent.calls (deadline_at) where finished_at is null;
comment on index agent.calls_unfinished is 'Finds calls whose request did not end them.';
create index calls_finished on agent.calls (finished_at) where finished_at is not null;
comment on index agent.calls_finished is 'Finds calls to delete.';
create index calls_description on agent.calls (description_key, deployment_id) where description_key is not null;
comment on index agent.calls_description is 'Finds the description of a graph that was requested before.';

create table agent.run_events (
    deployment_id  uuid    not null,
    bucket         date    not null,
    run_id         uuid    not null,
    seq            bigint  not null,
    epoch          integer not null,
    event          text    not null,
    data           text,
    checkpoint_id  uuid,
    constraint run_events_pkey primary key (deployment_id, bucket, run_id, seq),
    constraint run_events_content_check check (data is not null or checkpoint_id is not null)
) partition by range (bucket);
comment on table agent.run_events is
    'The events of runs, by day, so that retention drops a table and deletes no row. One fenced writer '
    'per run, numbers without gaps from 0: a reader''s cursor is "seq greater than the last one read".';
comment on column agent.run_events.deployment_id is 'The deployment that owns the row.';
comment on column agent.run_events.bucket is
    'Day of the run''s first attempt; chooses the partition.';
comment on column agent.run_events.run_id is 'The run that sent the event.';
comment on column agent.run_events.seq is 'Number of the event within the run.';
comment on column agent.run_events.epoch is 'Lease under which it was written.';
comment on column agent.run_events.event is 'Name of the event.';
comment on column agent.run_events.data is
    'JSON text as the runner sent it; text, because it is forwarded verbatim. With checkpoint_id what is around its '
    'values, null for nothing (agent.place_values).';
comment on column agent.run_events.checkpoint_id is
    'The data contain the values of this checkpoint, put there when read, so that they are not stored twice; null for '
    'other data.';

create table agent.run_events_default partition of agent.run_events default;
comment on table agent.run_events_default is
    'Rows of days without a partition; empty while agent.maintain_partitions is called daily.';

create table agent.event_sweeps (
    deployment_id  uuid not null,
    bucket         date not null,
    run_id         uuid not null,
    constraint event_sweeps_pkey primary key (deployment_id, bucket, run_id)
);
comment on table agent.event_sweeps is
    'Deleted runs that had more events than one statement deletes: agent.sweep_events deletes the rest.';
comment on column agent.event_sweeps.deployment_id is 'The deployment that owns the row.';
comment on column agent.event_sweeps.bucket is 'Partition of the events.';
comment on column agent.event_sweeps.run_id is 'The run, which no longer has a record.';

create table agent.run_sweeps (
    deployment_id  uuid        not null,
    thread_id      uuid        not null,
    run_id         uuid        not null,
    is_attaching   boolean     not null default false,
    due_at         timestamptz not null default clock_timestamp(),
    constraint run_sweeps_pkey primary key (deployment_id, thread_id, run_id)
);
comment on table agent.run_sweeps is
    'Deleted runs that saved more checkpoints, snapshots and writes than one statement deletes: nothing reads the '
    'rest, and agent.sweep_state deletes it.';
comment on column agent.run_sweeps.deployment_id is 'The deployment that owns the row.';
comment on column agent.run_sweeps.thread_id is 'The thread of the run.';
comment on column agent.run_sweeps.run_id is 'The run, which no longer has a record.';
comment on column agent.run_sweeps.is_attaching is
    'Some children of one of its checkpoints were attached to its parent: this run is deleted before others.';
comment on column agent.run_sweeps.due_at is 'Order of the sweep: a transaction moves its row to the end.';

create index run_sweeps_due on agent.run_sweeps (due_at);
comment on index agent.run_sweeps_due is 'Scanned by agent.sweep_state.';

create table agent.write_sweeps (
    deployment_id  uuid        not null,
    thread_id      uuid        not null,
    checkpoint_ns  text        not null,
    checkpoint_id  uuid        not null,
    deletions      bigint      not null,
    due_at         timestamptz not null default clock_timestamp(),
    constraint write_sweeps_pkey primary key (deployment_id, thread_id, checkpoint_ns, checkpoint_id)
);
comment on table agent.write_sweeps is
    'Deleted snapshots to which other runs wrote more than one statement deletes: agent.sweep_state deletes the rest.';
comment on column agent.write_sweeps.deployment_id is 'The deployment that owns the row.';
comment on column agent.write_sweeps.thread_id is 'The thread of the writes.';
comment on column agent.write_sweeps.checkpoint_ns is 'Namespace of the snapshot.';
comment on column agent.write_sweeps.checkpoint_id is 'The snapshot.';
comment on column agent.write_sweeps.deletions is
    'threads.state_deletions when it was deleted: later writes to it stay.';
comment on column agent.write_sweeps.due_at is 'Order of the sweep: a transaction moves its row to the end.';

create index write_sweeps_due on agent.write_sweeps (due_at);
comment on index agent.write_sweeps_due is 'Scanned by agent.sweep_state.';

create table agent.usage_events (
    deployment_id  uuid        not null,
    run_id         uuid        not null,
    thread_id      uuid        not null,
    assistant_id   uuid        not null,
    graph_id       text        not null,
    status         text        not null,
    attempts       smallint    not null,
    epoch          integer     not null,
    worker_id      bigint,
    created_at     timestamptz not null,
    started_at     timestamptz,
    finished_at    timestamptz not null,
    constraint usage_events_pkey primary key (deployment_id, run_id),
    constraint usage_events_status_check
        check (status in ('success', 'interrupted', 'error', 'timeout', 'rolled_back'))
);
comment on table agent.usage_events is
    'One row per run that ended, for billing, written in the transaction that ends it. Kept when run '
    'and thread are deleted. Also shows which worker ended a run when a batch is repeated after an unclear commit.';
comment on column agent.usage_events.deployment_id is 'The deployment that owns the row.';
comment on column agent.usage_events.run_id is 'The run that is charged.';
comment on column agent.usage_events.thread_id is 'The thread of the run, which may be deleted.';
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

create index usage_events_finished_at_idx on agent.usage_events (deployment_id, finished_at)
    include (started_at, status) where status <> '';
comment on index agent.usage_events_finished_at_idx is
    'What a deployment used in a period; with the columns that are summed, so that no row is read. The condition '
    'is true for all rows: without it the planner would look up runs here too, and read all of a deployment.';

insert into agent.schema_version (version, name) values (3, 'create_runs');
