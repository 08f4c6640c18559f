-- SPDX-License-Identifier: Apache-2.0
-- Purpose:  undo 0003.
-- Affects:  agent.run_queue, agent.runs.
-- Locks:    ACCESS EXCLUSIVE on both.
-- Breaking: yes, all runs are lost.
set local lock_timeout = '2s';

drop table agent.run_queue;
drop sequence agent.run_ready_seq;
drop table agent.runs;
delete from agent.schema_version where version = 3;
