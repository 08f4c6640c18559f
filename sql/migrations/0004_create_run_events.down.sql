-- SPDX-License-Identifier: Apache-2.0
-- Purpose:  undo 0004, with all day partitions.
-- Affects:  agent.run_events.
-- Locks:    ACCESS EXCLUSIVE on it and its partitions.
-- Breaking: yes, all events are lost.
set local lock_timeout = '2s';

drop table agent.run_events;
delete from agent.schema_version where version = 4;
