-- SPDX-License-Identifier: Apache-2.0
-- Purpose:  the events of runs, by day, so that retention drops a table and deletes no row.
-- Affects:  new objects only.
-- Locks:    none on existing tables.
-- Breaking: no.
set local lock_timeout = '2s';

create table agent.run_events (
    account_id     uuid    not null,
    bucket         date    not null,
    run_id         uuid    not null,
    seq            bigint  not null,
    epoch          integer not null,
    event          text    not null,
    data           text,
    checkpoint_id  uuid,
    constraint run_events_pkey primary key (account_id, bucket, run_id, seq),
    constraint run_events_content_check check ((data is null) <> (checkpoint_id is null))
) partition by range (bucket);
comment on table agent.run_events is
    'What a run streamed. One fenced writer per run, numbers without gaps from 0: '
    'a reader''s cursor is "seq greater than the last one seen".';
comment on column agent.run_events.account_id is 'Owner.';
comment on column agent.run_events.bucket is
    'Day of the run''s first attempt; chooses the partition.';
comment on column agent.run_events.run_id is 'The run.';
comment on column agent.run_events.seq is 'Number of the event within the run.';
comment on column agent.run_events.epoch is 'Lease under which it was written.';
comment on column agent.run_events.event is 'Name of the event.';
comment on column agent.run_events.data is
    'JSON text as the runner sent it; text, because it is sent on verbatim.';
comment on column agent.run_events.checkpoint_id is
    'Instead of data: the event shows the values of this checkpoint, composed when read, so that '
    'a long chat is not stored again.';

create table agent.run_events_default partition of agent.run_events default;
comment on table agent.run_events_default is
    'Catches rows of days without a partition; empty while agent.maintain_partitions is called '
    'daily.';

insert into agent.schema_version (version, name) values (4, 'create_run_events');
