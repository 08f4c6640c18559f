-- SPDX-License-Identifier: Apache-2.0
-- Purpose:  undo 0012. The functions that use the column must be gone already.
-- Affects:  agent.webhook_outbox.
-- Locks:    ACCESS EXCLUSIVE on agent.webhook_outbox, for a moment.
-- Breaking: yes, claim_webhooks is missing until that of the release before is installed.
set local lock_timeout = '2s';

drop function if exists agent.claim_webhooks(bigint, integer, integer, bigint, integer);
drop function if exists agent.next_receiver(bigint);
drop index agent.webhook_outbox_receiver;
comment on index agent.webhook_outbox_due is 'What claim_webhooks scans.';
alter table agent.webhook_outbox drop column receiver;
delete from agent.schema_version where version = 12;
