-- SPDX-License-Identifier: Apache-2.0
-- The privileges of the role of a server: it may call the functions, and read and write rows, since the
-- functions are security invoker. It may not change the schema. Included by install.sql.
grant usage on schema agent to :"app_role";
grant select, insert, update, delete
    on agent.graphs, agent.assistants, agent.assistant_versions, agent.store_items, agent.threads, agent.runs,
       agent.run_queue, agent.calls, agent.run_events, agent.event_sweeps, agent.checkpoints, agent.checkpoint_tasks,
       agent.checkpoint_items, agent.inherited_items, agent.item_sweeps, agent.copied_runs, agent.thread_copies,
       agent.copy_lists, agent.copy_blobs, agent.checkpoint_snapshots, agent.checkpoint_writes,
       agent.checkpoint_blobs, agent.blob_sweeps, agent.run_sweeps, agent.write_sweeps, agent.workers,
       agent.thread_expiries, agent.webhook_outbox, agent.account_limits, agent.account_counts,
       agent.account_measures
    to :"app_role";
grant select on agent.region, agent.schema_version to :"app_role";
-- The platform's API: customers manage their own accounts and keys.
grant select, insert, update (name, closed_at) on agent.accounts to :"app_role";
grant select, insert, update (expires_at, revoked_at, last_used_at) on agent.api_keys to :"app_role";
grant select, update (used_at, account_id) on agent.invitations to :"app_role";
grant select, insert on agent.audit_log, agent.account_deletions to :"app_role";
grant select, insert on agent.deployments to :"app_role";
grant select, insert on agent.usage_events to :"app_role";
grant usage on all sequences in schema agent to :"app_role";
grant execute on all functions in schema agent to :"app_role";
revoke execute on function :operator_functions from :"app_role";
