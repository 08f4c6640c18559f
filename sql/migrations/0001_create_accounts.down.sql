-- SPDX-License-Identifier: Apache-2.0
-- Purpose:  undo 0001: remove the schema. Everything above it must be gone already.
-- Affects:  agent.accounts, agent.schema_version.
-- Locks:    ACCESS EXCLUSIVE on both.
-- Breaking: yes, all accounts are lost.
set local lock_timeout = '2s';

drop table agent.accounts;
drop table agent.schema_version;
drop schema agent;
