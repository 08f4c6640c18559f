-- SPDX-License-Identifier: Apache-2.0
-- Purpose:  undo 0005.
-- Affects:  agent.checkpoints, agent.checkpoint_blobs, agent.blob_sweeps.
-- Locks:    ACCESS EXCLUSIVE on all.
-- Breaking: yes, the state of all threads is lost.
set local lock_timeout = '2s';

drop table agent.blob_sweeps;
drop table agent.checkpoint_blobs;
drop table agent.checkpoints;
drop type agent.channel_value;
delete from agent.schema_version where version = 5;
