-- SPDX-License-Identifier: Apache-2.0
-- Purpose:  undo 0004.
-- Affects:  agent.workers, agent.webhook_outbox.
-- Locks:    ACCESS EXCLUSIVE on these tables.
-- Breaking: yes, workers must register again, pending webhooks are lost.
set local lock_timeout = '2s';

drop table agent.webhook_outbox;
drop table agent.workers;
delete from agent.schema_version where version = 4;
