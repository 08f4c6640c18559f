-- SPDX-License-Identifier: Apache-2.0
-- Purpose:  undo 0011. The functions that use the column must be gone already.
-- Affects:  agent.runs; functions whose results or arguments were others before.
-- Locks:    ACCESS EXCLUSIVE on agent.runs.
-- Breaking: yes, the functions are missing until those of the release before are installed.
set local lock_timeout = '2s';

drop function if exists agent.create_run(
    uuid, uuid, uuid, uuid, text, text[], text, text, text, text, json, text);
drop function if exists agent.create_stateless_run(
    uuid, uuid, uuid, uuid, text, text[], text, text, text, json, text);
drop function if exists agent.enqueue_run(
    agent.threads, agent.assistants, uuid, text, text, text, text, text, uuid, agent.run_request);
drop function if exists agent.enqueue_stateless_run(
    uuid, uuid, uuid, agent.assistants, text, text, text, text, agent.run_request);
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
drop function if exists agent.read_events(uuid, uuid, uuid, bigint, integer, text[]);
drop function if exists agent.compose_gap(agent.runs, bigint);
drop function if exists agent.compose_result(agent.runs);
alter table agent.runs drop column feedback;
delete from agent.schema_version where version = 11;
