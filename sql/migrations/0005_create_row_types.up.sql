-- SPDX-License-Identifier: Apache-2.0
-- Purpose:  row types that functions pass to each other as arrays.
-- Affects:  new objects only.
-- Locks:    none on existing tables.
-- Breaking: no.
set local lock_timeout = '2s';

create type agent.run_request as (
    input             json,
    command           json,
    metadata          jsonb,
    config            jsonb,
    context           json,
    webhook           text,
    interrupt_before  json,
    interrupt_after   json,
    stream_mode       json,
    stream_subgraphs  boolean,
    stream_resumable  boolean,
    feedback_keys     json,
    checkpoint_id     uuid,
    checkpoint        json,
    if_not_exists     text,
    after_seconds     double precision,
    durability        text,
    checkpoint_during boolean,
    on_completion     text,
    strict_resume     boolean
);
comment on type agent.run_request is
    'The members of the body of a run creation that are read, null when absent.';
comment on column agent.run_request.input is 'Input of the graph.';
comment on column agent.run_request.command is 'Command to the graph, instead of input.';
comment on column agent.run_request.metadata is 'Metadata of the run.';
comment on column agent.run_request.config is 'Over the assistant''s config.';
comment on column agent.run_request.context is 'Over the assistant''s context.';
comment on column agent.run_request.webhook is 'URL to call at the end.';
comment on column agent.run_request.interrupt_before is 'Nodes to stop before, or "*".';
comment on column agent.run_request.interrupt_after is 'Nodes to stop after, or "*".';
comment on column agent.run_request.stream_mode is 'Stream mode or array of them.';
comment on column agent.run_request.stream_subgraphs is 'Whether to stream events of subgraphs.';
comment on column agent.run_request.stream_resumable is 'Whether the client wants to resume.';
comment on column agent.run_request.feedback_keys is 'Array of feedback keys.';
comment on column agent.run_request.checkpoint_id is 'Checkpoint to start from.';
comment on column agent.run_request.checkpoint is 'The same, as an object with checkpoint_id.';
comment on column agent.run_request.if_not_exists is 'create: a missing thread is created.';
comment on column agent.run_request.after_seconds is 'Delay before the run may start.';
comment on column agent.run_request.durability is 'When the runner saves checkpoints.';
comment on column agent.run_request.checkpoint_during is
    'Former name of durability: true is async, false is exit.';
comment on column agent.run_request.strict_resume is
    'Whether each answer of the command must be to an interrupt that waits.';
comment on column agent.run_request.on_completion is
    'keep: the thread of a stateless run is not temporary.';

create type agent.start_place as (
    checkpoint_ns   text,
    checkpoint_id   uuid,
    root_id         uuid,
    checkpoint_map  jsonb,
    given_map       jsonb
);
comment on type agent.start_place is
    'Where a run starts, or what an update changes: the checkpoint that a request names. See agent.resolve_checkpoint.';
comment on column agent.start_place.checkpoint_ns is 'Its namespace, empty for the root graph.';
comment on column agent.start_place.checkpoint_id is 'Its identifier.';
comment on column agent.start_place.root_id is
    'The checkpoint of the root graph during which it was saved; the same one for the root graph.';
comment on column agent.start_place.checkpoint_map is
    'Object: namespace of a subgraph -> its checkpoint; null when only the root graph has one.';
comment on column agent.start_place.given_map is 'The checkpoint_map of the request, or null.';

create type agent.assistant_request as (
    graph_id     text,
    name         text,
    description  text,
    config       jsonb,
    context      json,
    metadata     jsonb,
    if_exists    text
);
comment on type agent.assistant_request is
    'The members of the body of an assistant''s creation or update that are read, null when absent.';
comment on column agent.assistant_request.graph_id is 'The graph to run.';
comment on column agent.assistant_request.name is 'Name for display; null: none is given.';
comment on column agent.assistant_request.description is 'Free text.';
comment on column agent.assistant_request.config is 'Defaults for the config of each run.';
comment on column agent.assistant_request.context is 'Defaults for the context of each run.';
comment on column agent.assistant_request.metadata is 'Metadata; an update merges it.';
comment on column agent.assistant_request.if_exists is 'raise or do_nothing, of a creation.';

create type agent.leased_run as (
    deployment_id   uuid,
    run_id          uuid,
    epoch           integer,
    locks_thread    boolean,
    status          text,
    error           json,
    last_event_seq  bigint,
    is_failure      boolean,
    value           json,
    batch_no        integer,
    is_counted      boolean,
    saved_event_seq bigint
);
comment on type agent.leased_run is
    'A run under a lease that a worker holds or held, with what the worker reports about it. See '
    'agent.make_leased_run.';
comment on column agent.leased_run.deployment_id is 'The deployment that owns the row.';
comment on column agent.leased_run.run_id is 'The run, or the call, that is leased.';
comment on column agent.leased_run.epoch is 'Number of the lease: 1 at the first attempt.';
comment on column agent.leased_run.locks_thread is
    'Whether the worker writes more than events, which requires the lock of the thread.';
comment on column agent.leased_run.status is
    'success, error, interrupted or timeout when the run ended, else null.';
comment on column agent.leased_run.error is 'Object with error and message, or null.';
comment on column agent.leased_run.last_event_seq is
    'Number of its last event, reported with it or before; null for none.';
comment on column agent.leased_run.is_failure is 'Whether the worker ended it; else its runner did, or it continues.';
comment on column agent.leased_run.value is 'The result of a call that changes nothing, or null.';
comment on column agent.leased_run.batch_no is
    'Number of the batch, or of the next one that is counted, among those of the lease, or null.';
comment on column agent.leased_run.is_counted is 'Whether the batch has more than events.';
comment on column agent.leased_run.saved_event_seq is
    'Number of its last event before the batch, which must be stored; null for none.';

create type agent.run_end as (
    deployment_id   uuid,
    thread_id       uuid,
    run_id          uuid,
    status          text,
    error           json,
    last_event_seq  bigint,
    is_failure      boolean,
    value           json,
    cancel_reason   text
);
comment on type agent.run_end is 'A run that becomes final. See agent.make_end.';
comment on column agent.run_end.deployment_id is 'The deployment that owns the row.';
comment on column agent.run_end.thread_id is 'The thread of the run.';
comment on column agent.run_end.run_id is 'The run that ends.';
comment on column agent.run_end.status is 'The final status.';
comment on column agent.run_end.error is 'Object with error and message, or null.';
comment on column agent.run_end.last_event_seq is 'Number of its last event; null = to be read from its events.';
comment on column agent.run_end.is_failure is
    'Whether the server ended it: its status and error are not those of its runner.';
comment on column agent.run_end.value is 'The result of a call that changes nothing, or null.';
comment on column agent.run_end.cancel_reason is 'As runs.cancel_reason.';

create type agent.batch_event as (
    deployment_id  uuid,
    run_id         uuid,
    epoch          integer,
    seq            bigint,
    event          text,
    data           text,
    checkpoint_id  uuid
);
comment on type agent.batch_event is 'An event of a batch. See agent.make_event.';
comment on column agent.batch_event.deployment_id is 'The deployment that owns the row.';
comment on column agent.batch_event.run_id is 'The run that sent the event.';
comment on column agent.batch_event.epoch is 'Number of the lease under which it was sent.';
comment on column agent.batch_event.seq is 'Number of the event within the run.';
comment on column agent.batch_event.event is 'Name of the event.';
comment on column agent.batch_event.data is 'JSON text; with checkpoint_id what is around its values, or null.';
comment on column agent.batch_event.checkpoint_id is 'Checkpoint whose values the data contain.';

create type agent.channel_content as (
    name        text,
    kind        text,
    keep        integer,
    length      integer,
    bytes       bigint,
    content     text[],
    elements    integer[],
    is_digests  boolean
);
comment on type agent.channel_content is 'One channel of a checkpoint as a runner sends it.';
comment on column agent.channel_content.name is 'Name of the channel.';
comment on column agent.channel_content.kind is
    'array: a whole list; list: a list that shares its beginning with the parent''s; same: as in the parent; '
    'value: any other value; null when the notation is wrong.';
comment on column agent.channel_content.keep is 'Number of elements that a list shares with the parent''s.';
comment on column agent.channel_content.length is 'Number of elements in content.';
comment on column agent.channel_content.bytes is 'Length of content as JSON text.';
comment on column agent.channel_content.content is
    'JSON texts of the elements, one each, or of several when they are short. One text for a value.';
comment on column agent.channel_content.elements is 'Number of elements of each text; null: one.';
comment on column agent.channel_content.is_digests is
    'Whether the elements are digests of agent.checkpoint_blobs, in a list of a snapshot.';

create type agent.stored_items as (
    deployment_id  uuid,
    thread_id      uuid,
    list_id        bigint,
    first          integer,
    start_bytes    bigint,
    content        text[],
    elements       integer[],
    is_digests     boolean
);
comment on type agent.stored_items is 'Elements to be added to a list of agent.checkpoint_items.';
comment on column agent.stored_items.deployment_id is 'The deployment that owns the row.';
comment on column agent.stored_items.thread_id is 'The thread of the elements.';
comment on column agent.stored_items.list_id is 'The list of the elements.';
comment on column agent.stored_items.first is 'Position of the first element in the list.';
comment on column agent.stored_items.start_bytes is 'Length of the elements before them.';
comment on column agent.stored_items.content is
    'JSON texts of the elements, one each, or of several when they are short. One text for a value.';
comment on column agent.stored_items.elements is 'Number of elements of each text; null: one.';
comment on column agent.stored_items.is_digests is
    'Whether the elements are digests of agent.checkpoint_blobs, in a list of a snapshot.';

create type agent.batch_checkpoint as (
    deployment_id         uuid,
    run_id                uuid,
    epoch                 integer,
    checkpoint_ns         text,
    checkpoint_id         uuid,
    parent_checkpoint_id  uuid,
    channels              agent.channel_content[],
    next                  json,
    tasks                 json,
    metadata              json,
    format                text
);
comment on type agent.batch_checkpoint is 'A checkpoint of a batch.';
comment on column agent.batch_checkpoint.deployment_id is 'The deployment that owns the row.';
comment on column agent.batch_checkpoint.run_id is 'The run that sent the checkpoint.';
comment on column agent.batch_checkpoint.epoch is 'Number of the lease under which it was sent.';
comment on column agent.batch_checkpoint.checkpoint_ns is 'Namespace of its graph, empty for the root graph.';
comment on column agent.batch_checkpoint.checkpoint_id is 'Identifier made by the runner.';
comment on column agent.batch_checkpoint.parent_checkpoint_id is 'The snapshot that preceded it.';
comment on column agent.batch_checkpoint.channels is 'The values, split.';
comment on column agent.batch_checkpoint.next is 'Nodes to execute next.';
comment on column agent.batch_checkpoint.tasks is 'Tasks of those nodes.';
comment on column agent.batch_checkpoint.metadata is 'source, step, writes and parents.';
comment on column agent.batch_checkpoint.format is
    'Format of the records that continue from this checkpoint; null: the values do.';

create type agent.batch_record as (
    deployment_id  uuid,
    run_id         uuid,
    epoch          integer,
    type           text,
    checkpoint_ns  text,
    checkpoint_id  uuid,
    parent         uuid,
    checkpoint     json,
    metadata       json,
    channels       json,
    task_id        text,
    task_path      text,
    writes         json,
    digest         text,
    value_type     text,
    text           text,
    base64         text,
    part           text,
    parts          text
);
comment on type agent.batch_record is
    'A put, put_writes or blob of a batch, as the graph''s library sends them; members of other messages are null.';
comment on column agent.batch_record.deployment_id is 'The deployment that owns the row.';
comment on column agent.batch_record.run_id is 'The run that sent the record.';
comment on column agent.batch_record.epoch is 'Number of the lease under which it was sent.';
comment on column agent.batch_record.type is 'put, put_writes or blob.';
comment on column agent.batch_record.checkpoint_ns is 'Namespace, empty for the root graph.';
comment on column agent.batch_record.checkpoint_id is 'Identifier of the snapshot.';
comment on column agent.batch_record.parent is 'put: the snapshot that preceded it.';
comment on column agent.batch_record.checkpoint is 'put: the library''s object without the values.';
comment on column agent.batch_record.metadata is 'put: the library''s metadata.';
comment on column agent.batch_record.channels is 'put: references of the channels that changed.';
comment on column agent.batch_record.task_id is 'put_writes: the task.';
comment on column agent.batch_record.task_path is 'put_writes: where the task stands in the graph.';
comment on column agent.batch_record.writes is 'put_writes: array of [idx, channel, reference].';
comment on column agent.batch_record.digest is 'blob: its digest.';
comment on column agent.batch_record.value_type is 'blob: how the library encoded it.';
comment on column agent.batch_record.text is 'blob: its content, unless base64 has it.';
comment on column agent.batch_record.base64 is 'blob: its content, unless text has it.';
comment on column agent.batch_record.part is 'blob: number of the part, from 0.';
comment on column agent.batch_record.parts is 'blob: number of parts.';

create type agent.blob_use as (
    deployment_id  uuid,
    thread_id      uuid,
    digest         uuid,
    uses           integer
);
comment on type agent.blob_use is 'How often new rows name a blob, less the rows that no longer do.';
comment on column agent.blob_use.deployment_id is 'The deployment that owns the row.';
comment on column agent.blob_use.thread_id is 'The thread that has the blob.';
comment on column agent.blob_use.digest is 'Its digest.';
comment on column agent.blob_use.uses is 'Difference to checkpoint_blobs.uses.';

create type agent.batch_task as (
    deployment_id  uuid,
    run_id         uuid,
    epoch          integer,
    checkpoint_ns  text,
    checkpoint_id  uuid,
    task_id        text,
    task           text
);
comment on type agent.batch_task is 'A task of a batch.';
comment on column agent.batch_task.deployment_id is 'The deployment that owns the row.';
comment on column agent.batch_task.run_id is 'The run that sent the report.';
comment on column agent.batch_task.epoch is 'Number of the lease under which it was sent.';
comment on column agent.batch_task.checkpoint_ns is 'Namespace of the checkpoint.';
comment on column agent.batch_task.checkpoint_id is 'The checkpoint in whose tasks it is.';
comment on column agent.batch_task.task_id is 'Identifier of the task.';
comment on column agent.batch_task.task is 'As agent.checkpoint_tasks.task.';

insert into agent.schema_version (version, name) values (5, 'create_row_types');
