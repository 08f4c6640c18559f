-- SPDX-License-Identifier: Apache-2.0
-- Purpose:  undo 0007.
-- Affects:  agent.usage_events.
-- Locks:    ACCESS EXCLUSIVE on it.
-- Breaking: yes, usage that was not billed is lost.
set local lock_timeout = '2s';

drop table agent.usage_events;
delete from agent.schema_version where version = 7;
