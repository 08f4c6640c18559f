-- SPDX-License-Identifier: Apache-2.0
-- Purpose:  undo 0001.
-- Affects:  agent.assistants, agent.accounts, agent.schema_version.
-- Locks:    ACCESS EXCLUSIVE on these tables.
-- Breaking: yes, all accounts and assistants are lost.
set local lock_timeout = '2s';

drop table agent.assistants;
drop table agent.accounts;
drop table agent.schema_version;
drop schema agent;
