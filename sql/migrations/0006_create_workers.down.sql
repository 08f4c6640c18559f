-- SPDX-License-Identifier: Apache-2.0
-- Purpose:  undo 0006.
-- Affects:  agent.workers.
-- Locks:    ACCESS EXCLUSIVE on it.
-- Breaking: yes, all workers must register again.
set local lock_timeout = '2s';

drop table agent.workers;
delete from agent.schema_version where version = 6;
