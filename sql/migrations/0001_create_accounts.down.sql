-- SPDX-License-Identifier: Apache-2.0
-- Purpose:  undo 0001.
-- Affects:  agent.store_items, agent.assistant_versions, agent.assistants, agent.graphs, agent.invitations,
--           agent.account_deletions, agent.audit_log, agent.api_keys, agent.deployments, agent.account_measures,
--           agent.account_counts, agent.account_limits, agent.accounts, agent.region, agent.schema_version.
-- Locks:    ACCESS EXCLUSIVE on these tables.
-- Breaking: yes, all accounts, their API keys, deployments, assistants and store items are lost.
set local lock_timeout = '2s';

drop table agent.store_items;
drop table agent.assistant_versions;
drop table agent.assistants;
drop table agent.graphs;
drop table agent.invitations;
drop table agent.account_deletions;
drop table agent.audit_log;
drop table agent.api_keys;
drop table agent.deployments;
drop table agent.account_measures;
drop table agent.account_counts;
drop table agent.account_limits;
drop table agent.accounts;
drop table agent.region;
drop table agent.schema_version;
drop schema agent;
