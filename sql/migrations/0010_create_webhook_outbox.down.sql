-- SPDX-License-Identifier: Apache-2.0
-- Purpose:  undo 0010.
-- Affects:  agent.webhook_outbox.
-- Locks:    ACCESS EXCLUSIVE on it.
-- Breaking: yes, webhooks that were not delivered are lost.
set local lock_timeout = '2s';

drop table agent.webhook_outbox;
delete from agent.schema_version where version = 10;
