-- SPDX-License-Identifier: Apache-2.0
-- Purpose:  where the feedback of a run goes; functions whose results or arguments change.
-- Affects:  agent.runs; the old functions go, install.sql makes the new ones.
-- Locks:    ACCESS EXCLUSIVE on agent.runs, for a moment: no row is rewritten.
-- Breaking: yes, servers of the release before cannot call the new functions.
set local lock_timeout = '2s';

alter table agent.runs add column feedback json;
comment on column agent.runs.feedback is
    'Object of addresses, key = feedback key; null when none was asked for or none is configured.';

drop function if exists agent.create_run(
    uuid, uuid, uuid, uuid, text, text[], text, text, text, text, json);
drop function if exists agent.create_stateless_run(
    uuid, uuid, uuid, uuid, text, text[], text, text, text, json);
drop function if exists agent.enqueue_run(
    agent.threads, agent.assistants, uuid, text, text, text, text, uuid, agent.run_request);
drop function if exists agent.enqueue_stateless_run(
    uuid, uuid, uuid, agent.assistants, text, text, text, agent.run_request);
drop function if exists agent.preempt_runs(uuid, uuid, text);
drop function if exists agent.cancel_run(uuid, uuid, uuid, text);
drop function if exists agent.delete_run(uuid, uuid, uuid);
drop function if exists agent.delete_thread(uuid, uuid);
drop function if exists agent.release_leased_runs(bigint, agent.run_report[], boolean, text, text);
drop function if exists agent.release_runs(bigint, json, boolean, text);
drop function if exists agent.mark_worker_dead(bigint, boolean);
drop function if exists agent.sweep_workers();
drop function if exists agent.expire_threads();
drop function if exists agent.notify_runs(uuid[]);
drop function if exists agent.stream_state(uuid, uuid, uuid);
drop function if exists agent.read_events(uuid, uuid, uuid, bigint, integer);

insert into agent.schema_version (version, name) values (11, 'add_run_feedback');
