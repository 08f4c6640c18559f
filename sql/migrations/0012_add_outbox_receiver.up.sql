-- SPDX-License-Identifier: Apache-2.0
-- Purpose:  who is to be told, as a number: claims share the worker's room among receivers.
-- Affects:  agent.webhook_outbox; the old claim_webhooks goes, install.sql makes the new one.
-- Locks:    ACCESS EXCLUSIVE on agent.webhook_outbox while its rows are written anew.
-- Breaking: yes, supervisors of the release before cannot claim webhooks; they wait until a new one does.
set local lock_timeout = '2s';

alter table agent.webhook_outbox add column receiver bigint not null generated always as
    (hashtextextended(lower(coalesce(substring(url from '://(?:[^/?#]*@)?([^/?#]*)'), '')), 0)) stored;
comment on column agent.webhook_outbox.receiver is
    'Hash of the host and port of the address. Two receivers with one hash would share one''s room, no more.';

create index webhook_outbox_receiver on agent.webhook_outbox (receiver, due_at) where dead_at is null;
comment on index agent.webhook_outbox_receiver is 'What claim_webhooks scans, receiver by receiver.';
comment on index agent.webhook_outbox_due is 'Whether anything is due.';

drop function if exists agent.claim_webhooks(bigint, integer, bigint, integer);

insert into agent.schema_version (version, name) values (12, 'add_outbox_receiver');
