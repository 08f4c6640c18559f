-- SPDX-License-Identifier: Apache-2.0
-- Purpose:  undo 0002.
-- Affects:  agent.threads, agent.thread_expiries, agent.checkpoints, agent.checkpoint_blobs, agent.blob_sweeps.
-- Locks:    ACCESS EXCLUSIVE on these tables.
-- Breaking: yes, all threads and their state are lost.
set local lock_timeout = '2s';

drop table agent.blob_sweeps;
drop table agent.checkpoint_blobs;
drop table agent.checkpoints;
drop type agent.channel_value;
drop table agent.thread_expiries;
drop table agent.threads;
delete from agent.schema_version where version = 2;
