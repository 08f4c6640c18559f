-- SPDX-License-Identifier: Apache-2.0
-- Purpose:  undo 0003.
-- Affects:  agent.runs, agent.run_queue, agent.calls, agent.run_events with its partitions,
--           agent.event_sweeps, agent.run_sweeps, agent.write_sweeps, agent.usage_events, with their domains.
-- Locks:    ACCESS EXCLUSIVE on these tables.
-- Breaking: yes, all runs, their events, and usage that was not billed are lost.
set local lock_timeout = '2s';

drop table agent.usage_events;
drop table agent.write_sweeps;
drop table agent.run_sweeps;
drop table agent.event_sweeps;
drop table agent.run_events;
drop table agent.calls;
drop table agent.run_queue;
drop domain agent.max_concurrent_runs;
drop domain agent.call_op;
drop domain agent.cancel_action;
drop domain agent.queue_state;
drop sequence agent.run_ready_seq;
drop table agent.runs;
drop domain agent.multitask_strategy;
drop domain agent.run_status;
delete from agent.schema_version where version = 3;
