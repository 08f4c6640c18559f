-- SPDX-License-Identifier: Apache-2.0
-- Purpose:  undo 0005.
-- Affects:  types only; drop the functions that use them first.
-- Locks:    none on tables.
-- Breaking: yes, the functions cannot run.
set local lock_timeout = '2s';

drop type agent.blob_use;
drop type agent.batch_record;
drop type agent.batch_task;
drop type agent.batch_checkpoint;
drop type agent.stored_items;
drop type agent.channel_content;
drop type agent.batch_event;
drop type agent.run_end;
drop type agent.leased_run;
drop type agent.assistant_request;
drop type agent.start_place;
drop type agent.run_request;
delete from agent.schema_version where version = 5;
