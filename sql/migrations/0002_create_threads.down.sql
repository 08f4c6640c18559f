-- SPDX-License-Identifier: Apache-2.0
-- Purpose:  undo 0002.
-- Affects:  agent.threads, agent.assistants.
-- Locks:    ACCESS EXCLUSIVE on both.
-- Breaking: yes, all threads and assistants are lost.
set local lock_timeout = '2s';

drop table agent.threads;
drop table agent.assistants;
delete from agent.schema_version where version = 2;
