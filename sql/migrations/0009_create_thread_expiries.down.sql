-- SPDX-License-Identifier: Apache-2.0
-- Purpose:  undo 0009. The functions that use it must be gone already.
-- Affects:  agent.threads, agent.runs, agent.run_request, agent.thread_expiries.
-- Locks:    ACCESS EXCLUSIVE on these tables.
-- Breaking: yes, hidden threads look like any other and stay for ever.
set local lock_timeout = '2s';

drop table agent.thread_expiries;
alter type agent.run_request drop attribute on_completion;
alter table agent.runs drop column temporary;
alter table agent.threads drop column temporary;
delete from agent.schema_version where version = 9;
