-- SPDX-License-Identifier: Apache-2.0
-- Creates the functions of this folder.
\ir workers/list_node_workers.sql
\ir workers/mark_worker_dead.sql
\ir workers/measure_accounts.sql
\ir workers/notify_runs.sql
\ir workers/register_worker.sql
\ir workers/renew_worker.sql
\ir workers/report_failing_graphs.sql
\ir workers/save_graphs.sql
\ir workers/count_accounts.sql
\ir workers/end_full_runs.sql
\ir workers/set_limits.sql
\ir workers/sweep_workers.sql

\ir leases/check_leases.sql
\ir leases/claim_runs.sql
\ir leases/compose_starts.sql
\ir leases/fail_run.sql
\ir leases/read_state.sql
\ir leases/release_runs.sql
\ir leases/save_batch.sql
\ir leases/use_store.sql

\ir snapshots/read_blobs.sql
\ir snapshots/read_checkpoint.sql
\ir snapshots/read_checkpoints.sql
\ir snapshots/read_delta.sql

\ir webhooks/claim_webhooks.sql
\ir webhooks/save_webhooks.sql
\ir webhooks/sweep_webhooks.sql

\ir deletion/expire_threads.sql
\ir deletion/maintain_partitions.sql
\ir deletion/sweep_accounts.sql
\ir deletion/sweep_api_keys.sql
\ir deletion/sweep_audit_log.sql
\ir deletion/sweep_calls.sql
\ir deletion/sweep_copies.sql
\ir deletion/sweep_events.sql
\ir deletion/sweep_state.sql
\ir deletion/sweep_store.sql
