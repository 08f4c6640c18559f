-- SPDX-License-Identifier: Apache-2.0
-- Purpose:  undo 0002.
-- Affects:  agent.threads, agent.thread_expiries, agent.checkpoints, agent.checkpoint_tasks, agent.checkpoint_items,
--           agent.inherited_items, agent.item_sweeps, agent.checkpoint_snapshots, agent.checkpoint_writes,
--           agent.checkpoint_blobs, agent.blob_sweeps, agent.copied_runs, agent.thread_copies, agent.copy_lists,
--           agent.copy_blobs, domain agent.thread_status.
-- Locks:    ACCESS EXCLUSIVE on these tables.
-- Breaking: yes, all threads and their state are lost.
set local lock_timeout = '2s';

drop table agent.copy_blobs;
drop table agent.copy_lists;
drop table agent.thread_copies;
drop table agent.copied_runs;
drop table agent.blob_sweeps;
drop table agent.checkpoint_blobs;
drop table agent.checkpoint_writes;
drop table agent.checkpoint_snapshots;
drop table agent.item_sweeps;
drop table agent.inherited_items;
drop table agent.checkpoint_items;
drop table agent.checkpoint_tasks;
drop table agent.checkpoints;
drop type agent.channel_value;
drop sequence agent.checkpoint_list_seq;
drop table agent.thread_expiries;
drop table agent.threads;
drop domain agent.thread_status;
delete from agent.schema_version where version = 2;
