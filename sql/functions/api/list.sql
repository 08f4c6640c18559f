-- SPDX-License-Identifier: Apache-2.0
-- Creates the functions of this folder.
\ir base/database_region.sql
\ir base/read_page.sql
\ir base/schema_version.sql

\ir accounts/begin_export.sql
\ir accounts/create_account_key.sql
\ir accounts/delete_own_account.sql
\ir accounts/describe_api_key.sql
\ir accounts/export_account.sql
\ir accounts/find_api_key.sql
\ir accounts/find_invalid_keys.sql
\ir accounts/get_account.sql
\ir accounts/get_deletion.sql
\ir accounts/get_usage.sql
\ir accounts/list_account_keys.sql
\ir accounts/list_audit_log.sql
\ir accounts/revoke_account_key.sql
\ir accounts/rotate_account_key.sql
\ir accounts/sign_up.sql
\ir accounts/update_account.sql
\ir accounts/use_api_key.sql
\ir accounts/declare_deployment.sql

\ir assistants/count_assistants.sql
\ir assistants/create_assistant.sql
\ir assistants/delete_assistant.sql
\ir assistants/describe_graph.sql
\ir assistants/get_assistant.sql
\ir assistants/list_assistant_versions.sql
\ir assistants/search_assistants.sql
\ir assistants/set_assistant_version.sql
\ir assistants/update_assistant.sql

\ir threads/abandon_copy.sql
\ir threads/copy_thread.sql
\ir threads/count_threads.sql
\ir threads/create_thread.sql
\ir threads/delete_thread.sql
\ir threads/get_thread.sql
\ir threads/get_thread_storage.sql
\ir threads/prune_thread.sql
\ir threads/search_threads.sql
\ir threads/update_thread.sql

\ir runs/cancel_run.sql
\ir runs/cancel_runs.sql
\ir runs/cancel_runs_by_status.sql
\ir runs/create_run.sql
\ir runs/create_stateless_run.sql
\ir runs/create_stateless_runs.sql
\ir runs/delete_run.sql
\ir runs/find_run_thread.sql
\ir runs/get_run.sql
\ir runs/join_run.sql
\ir runs/list_runs.sql

\ir calls/create_thread_state.sql
\ir calls/end_call.sql
\ir calls/join_call.sql
\ir calls/update_state.sql

\ir checkpoints/get_history.sql
\ir checkpoints/get_state.sql
\ir checkpoints/read_values.sql

\ir events/find_checkpoint_event.sql
\ir events/find_thread_end.sql
\ir events/read_events.sql
\ir events/read_thread_events.sql
\ir events/read_updates.sql

\ir store/delete_item.sql
\ir store/get_item.sql
\ir store/list_namespaces.sql
\ir store/put_item.sql
\ir store/search_items.sql
