-- SPDX-License-Identifier: Apache-2.0
-- Brings a database to the current version: applies the missing migrations, then replaces all functions,
-- in one transaction. Can be repeated; a failure changes nothing. Of two first installations at the same time
-- one fails.
--
--   psql -X -d DATABASE -f sql/install.sql [-v app_role=ROLE] [-v owner_role=ROLE] [-v operator_role=ROLE]
--        [-v region=NAME]
--
-- Run by a superuser: owner_role (agent_owner) owns the schema and is created when it is missing.
-- Run by a role that may create schemas in the database: that role owns the schema, or owner_role, of
-- which it must be a member. app_role is granted the privileges of a server, operator_role those of operators; a
-- superuser creates operator_role (agent_operator) when it is missing. region (local) is that of the database, which
-- the first installation fixes.
\set ON_ERROR_STOP on
\set QUIET on
\pset tuples_only on
\pset format unaligned
begin;
-- First, so that no unqualified name finds an object of another role.
set local search_path = pg_catalog, pg_temp;
set local client_min_messages = warning;
set local lock_timeout = '5s';

do $$
begin
    if current_setting('server_version_num')::integer < 140000 then
        raise exception 'agent: PostgreSQL 14 or later is needed, this is %',
            current_setting('server_version');
    elsif current_setting('server_encoding') <> 'UTF8' then
        raise exception 'agent: the database must have encoding UTF8, it has %',
            current_setting('server_encoding');
    end if;
end
$$;

select r.rolsuper as is_superuser, r.rolname as installer
  from pg_roles r
 where r.rolname = current_user \gset
\set may_not_create false
\if :{?owner_role}
\elif :is_superuser
    \set owner_role agent_owner
\else
    \set owner_role :installer
\endif
\ir verify.sql
\ir lock.sql
\if :is_superuser
    \ir owner.sql
    \ir transfer.sql
\endif
\if :{?app_role}
    \ir restrict.sql
\endif
\if :{?operator_role}
\elif :is_superuser
    \set operator_role agent_operator
\endif
\if :{?operator_role}
    \ir operator.sql
\endif
-- The owner creates all objects from here on.
set local role :"owner_role";

\ir migrations/list.sql
\ir migrations/version.sql
select :version > max(left(m.name, 4)::integer) as is_newer
  from regexp_split_to_table(:'migrations', ' ') m (name) \gset
\if :is_newer
    do $$
    begin
        raise exception 'agent: the schema is newer than these files; install from newer files';
    end
    $$;
\endif
\if :{?region}
    \ir region.sql
\endif
\ir migrations/next_up.sql

-- A function in SQL comes after all that it calls. First what inline functions call.
\ir functions/internal/base/concat_objects.sql
\ir functions/internal/values/cut_elements.sql
\ir functions/internal/runs/measure_run_metadata.sql
\ir functions/internal/runs/remove_identity.sql
\ir functions/inline/runs/drop_identity.sql
\ir functions/inline/base/is_full_page.sql
\ir functions/inline/base/jitter.sql
\ir functions/inline/base/now.sql
\ir functions/inline/base/render_time.sql
\ir functions/inline/accounts/render_account.sql
\ir functions/inline/accounts/render_api_key.sql
\ir functions/inline/accounts/render_audit.sql
\ir functions/inline/accounts/render_deletion.sql
\ir functions/inline/accounts/render_key_actor.sql
\ir functions/inline/accounts/render_limit.sql
\ir functions/inline/accounts/render_operator.sql
\ir functions/inline/values/append_values.sql
\ir functions/inline/values/has_bare_value.sql
\ir functions/inline/values/read_items.sql
\ir functions/inline/values/compose_values.sql
\ir functions/inline/values/compose_bounded_values.sql
\ir functions/inline/values/find_channels.sql
\ir functions/inline/values/read_notation.sql
\ir functions/inline/values/most_channels.sql
\ir functions/inline/values/split_values.sql
\ir functions/inline/values/stored_bytes.sql
\ir functions/inline/values/value_bytes.sql
\ir functions/inline/deletion/add_deleted_rows.sql
\ir functions/inline/deletion/deletion_bytes.sql
\ir functions/inline/deletion/find_swept_runs.sql
\ir functions/inline/deletion/find_write_sweep.sql
\ir functions/inline/deletion/list_deleted_tables.sql
\ir functions/inline/deletion/sweep_delay.sql
\ir functions/inline/runs/find_run.sql
\ir functions/inline/runs/make_end.sql
\ir functions/inline/runs/merge_config.sql
\ir functions/inline/runs/names_checkpoint.sql
\ir functions/inline/runs/merge_context.sql
\ir functions/inline/runs/pick_command.sql
\ir functions/inline/runs/render_cancel_reason.sql
\ir functions/inline/runs/render_run.sql
\ir functions/inline/runs/run_bytes.sql
\ir functions/inline/runs/stored_run_bytes.sql
\ir functions/inline/runs/stronger_cancel.sql
\ir functions/inline/checkpoints/find_checkpoint.sql
\ir functions/inline/checkpoints/find_children.sql
\ir functions/inline/checkpoints/find_earlier.sql
\ir functions/inline/checkpoints/find_last_checkpoint.sql
\ir functions/inline/checkpoints/find_run_checkpoints.sql
\ir functions/inline/checkpoints/find_run_metadata.sql
\ir functions/inline/checkpoints/render_checkpoint.sql
\ir functions/inline/checkpoints/render_checkpoint_metadata.sql
\ir functions/inline/checkpoints/render_place.sql
\ir functions/inline/snapshots/find_delta_step.sql
\ir functions/inline/snapshots/find_writes.sql
\ir functions/inline/snapshots/most_digests.sql
\ir functions/inline/snapshots/render_reference.sql
\ir functions/inline/snapshots/render_snapshot.sql
\ir functions/inline/snapshots/split_digests.sql
\ir functions/inline/leases/choose_start.sql
\ir functions/inline/leases/compose_checkpoint.sql
\ir functions/inline/leases/compose_call.sql
\ir functions/inline/leases/compose_start.sql
\ir functions/inline/leases/compose_message.sql
\ir functions/inline/leases/find_lease.sql
\ir functions/inline/leases/find_new_checkpoints.sql
\ir functions/inline/leases/find_ready_graphs.sql
\ir functions/inline/leases/share_ready_runs.sql
\ir functions/inline/leases/find_idle_graphs.sql
\ir functions/inline/leases/make_leased_run.sql
\ir functions/inline/leases/start_bytes.sql
\ir functions/inline/threads/expiry_delay.sql
\ir functions/inline/threads/find_threads.sql
\ir functions/inline/threads/most_examined_threads.sql
\ir functions/inline/threads/read_ttl.sql
\ir functions/inline/threads/render_thread.sql
\ir functions/inline/assistants/find_serving_workers.sql
\ir functions/inline/assistants/matches_assistant.sql
\ir functions/inline/assistants/render_assistant.sql
\ir functions/inline/assistants/render_assistant_version.sql
\ir functions/inline/assistants/render_schemas.sql
\ir functions/inline/assistants/settings_bytes.sql
\ir functions/inline/runs/check_run_metadata.sql
\ir functions/inline/events/compose_event.sql
\ir functions/inline/events/make_event.sql
\ir functions/inline/events/page_bytes.sql
\ir functions/inline/store/is_live_item.sql
\ir functions/inline/store/namespace_end.sql
\ir functions/inline/store/render_item.sql
\ir functions/inline/webhooks/next_receiver.sql
\ir functions/inline/webhooks/next_webhook_deployment.sql
\ir functions/inline/webhooks/webhook_delay.sql
\ir functions/internal/base/compose_record.sql
\ir functions/internal/base/pick_members.sql
\ir functions/internal/base/read_words.sql

\ir functions/internal/accounts/add_api_key.sql
\ir functions/internal/accounts/add_to_count.sql
\ir functions/internal/accounts/begin_counts.sql
\ir functions/internal/accounts/check_key_limit.sql
\ir functions/internal/accounts/check_new_runs.sql
\ir functions/internal/accounts/compare_counts.sql
\ir functions/internal/accounts/compose_export.sql
\ir functions/internal/accounts/count_ended_runs.sql
\ir functions/internal/accounts/count_new_run.sql
\ir functions/internal/accounts/count_runs.sql
\ir functions/internal/accounts/count_started_runs.sql
\ir functions/internal/accounts/delete_revoked_keys.sql
\ir functions/internal/accounts/end_account.sql
\ir functions/internal/accounts/end_api_key.sql
\ir functions/internal/accounts/end_counts.sql
\ir functions/internal/accounts/expire_api_keys.sql
\ir functions/internal/accounts/find_free_runs.sql
\ir functions/internal/accounts/find_limit.sql
\ir functions/internal/accounts/insert_account.sql
\ir functions/internal/accounts/insert_api_key.sql
\ir functions/internal/accounts/list_exported_tables.sql
\ir functions/internal/accounts/lock_actor.sql
\ir functions/internal/accounts/lock_key_account.sql
\ir functions/internal/accounts/read_api_keys.sql
\ir functions/internal/accounts/read_count.sql
\ir functions/internal/accounts/record_audit.sql
\ir functions/internal/accounts/refuse_region_change.sql
\ir functions/internal/accounts/replace_api_key.sql
\ir functions/internal/accounts/sum_usage.sql

\ir functions/internal/values/add_to_values.sql
\ir functions/internal/values/choose_end.sql
\ir functions/internal/values/count_bytes.sql
\ir functions/internal/values/count_common.sql
\ir functions/internal/values/cut_channel.sql
\ir functions/internal/values/cut_row.sql
\ir functions/internal/values/derive_channel.sql
\ir functions/internal/values/fork_list.sql
\ir functions/internal/values/insert_items.sql
\ir functions/internal/values/measure_channels.sql

\ir functions/internal/assistants/add_assistant_version.sql
\ir functions/internal/assistants/change_assistant.sql
\ir functions/internal/assistants/check_assistant.sql
\ir functions/internal/assistants/create_system_assistant.sql
\ir functions/internal/assistants/find_assistant.sql
\ir functions/internal/assistants/is_graph_served.sql
\ir functions/internal/assistants/list_served_graphs.sql
\ir functions/internal/assistants/refuse_assistant.sql

\ir functions/internal/threads/compose_thread.sql
\ir functions/internal/threads/needs_sort.sql
\ir functions/internal/threads/prepend_ttl.sql
\ir functions/internal/threads/read_thread_filter.sql

\ir functions/internal/checkpoints/add_subgraphs.sql
\ir functions/internal/checkpoints/find_namespace.sql
\ir functions/internal/checkpoints/find_parents.sql
\ir functions/internal/checkpoints/find_place.sql
\ir functions/internal/checkpoints/insert_checkpoints.sql
\ir functions/internal/checkpoints/move_head.sql
\ir functions/internal/checkpoints/render_interrupts.sql
\ir functions/internal/checkpoints/render_state.sql
\ir functions/internal/checkpoints/render_tasks.sql
\ir functions/internal/checkpoints/save_checkpoints.sql
\ir functions/internal/checkpoints/save_tasks.sql
\ir functions/internal/checkpoints/skip_checkpoints.sql

\ir functions/internal/snapshots/check_record.sql
\ir functions/internal/snapshots/compose_delta.sql
\ir functions/internal/snapshots/find_delta_channels.sql
\ir functions/internal/snapshots/find_last_snapshot.sql
\ir functions/internal/snapshots/find_snapshot.sql
\ir functions/internal/snapshots/has_members.sql
\ir functions/internal/snapshots/list_uses.sql
\ir functions/internal/snapshots/open_delta.sql
\ir functions/internal/snapshots/parse_reference.sql
\ir functions/internal/snapshots/read_reference.sql
\ir functions/internal/snapshots/read_references.sql
\ir functions/internal/snapshots/read_writes.sql
\ir functions/internal/snapshots/save_blobs.sql
\ir functions/internal/snapshots/save_part.sql
\ir functions/internal/snapshots/save_records.sql
\ir functions/internal/snapshots/save_snapshot.sql
\ir functions/internal/snapshots/save_writes.sql
\ir functions/internal/snapshots/split_members.sql

\ir functions/internal/events/compose_gap.sql
\ir functions/internal/events/create_partition.sql
\ir functions/internal/events/last_event_seq.sql
\ir functions/internal/events/place_values.sql
\ir functions/internal/events/save_events.sql

\ir functions/internal/runs/apply_cancels.sql
\ir functions/internal/runs/compose_feedback.sql
\ir functions/internal/runs/compose_result.sql
\ir functions/internal/runs/check_new_run.sql
\ir functions/internal/runs/enqueue_run.sql
\ir functions/internal/runs/enqueue_stateless_run.sql
\ir functions/internal/runs/finalize_runs.sql
\ir functions/internal/runs/find_stored_run.sql
\ir functions/internal/runs/may_continue_run.sql
\ir functions/internal/runs/preempt_runs.sql
\ir functions/internal/runs/promote_delayed_runs.sql
\ir functions/internal/runs/promote_next_runs.sql
\ir functions/internal/runs/refuse_final_change.sql
\ir functions/internal/runs/rollback_run.sql

\ir functions/internal/leases/apply_ends.sql
\ir functions/internal/leases/fence_leases.sql
\ir functions/internal/leases/lock_leases.sql
\ir functions/internal/leases/lock_ready_runs.sql
\ir functions/internal/leases/lock_threads.sql
\ir functions/internal/leases/parse_batch.sql
\ir functions/internal/leases/release_leased_runs.sql
\ir functions/internal/leases/requeue_run.sql

\ir functions/internal/calls/choose_call_result.sql
\ir functions/internal/calls/enqueue_update.sql
\ir functions/internal/calls/find_call_checkpoint.sql
\ir functions/internal/calls/finish_calls.sql
\ir functions/internal/calls/is_saved_update.sql

\ir functions/internal/store/find_items.sql
\ir functions/internal/store/find_namespaces.sql
\ir functions/internal/store/put_items.sql
\ir functions/internal/store/read_item.sql
\ir functions/internal/store/read_namespace.sql
\ir functions/internal/store/read_store.sql
\ir functions/internal/store/refresh_items.sql
\ir functions/internal/store/split_filter.sql

\ir functions/internal/webhooks/lock_webhooks.sql
\ir functions/internal/webhooks/record_webhooks.sql
\ir functions/internal/webhooks/release_webhooks.sql
\ir functions/internal/webhooks/webhook_turns.sql

\ir functions/internal/copies/copy_blobs.sql
\ir functions/internal/copies/copy_checkpoints.sql
\ir functions/internal/copies/copy_history.sql
\ir functions/internal/copies/copy_items.sql
\ir functions/internal/copies/copy_ranges.sql
\ir functions/internal/copies/copy_snapshots.sql
\ir functions/internal/copies/find_next_namespace.sql
\ir functions/internal/copies/finish_copy.sql

\ir functions/internal/deletion/attach_children.sql
\ir functions/internal/deletion/begin_account_deletion.sql
\ir functions/internal/deletion/delete_account_piece.sql
\ir functions/internal/deletion/delete_account_queue.sql
\ir functions/internal/deletion/delete_account_records.sql
\ir functions/internal/deletion/delete_account_rows.sql
\ir functions/internal/deletion/delete_account_threads.sql
\ir functions/internal/deletion/delete_events.sql
\ir functions/internal/deletion/delete_items.sql
\ir functions/internal/deletion/delete_records.sql
\ir functions/internal/deletion/delete_run_state.sql
\ir functions/internal/deletion/delete_runs.sql
\ir functions/internal/deletion/delete_state.sql
\ir functions/internal/deletion/delete_tasks.sql
\ir functions/internal/deletion/delete_writes.sql
\ir functions/internal/deletion/discard_checkpoints.sql
\ir functions/internal/deletion/discard_rows.sql
\ir functions/internal/deletion/discard_run.sql
\ir functions/internal/deletion/fit_deletion.sql
\ir functions/internal/deletion/prune_state.sql
\ir functions/internal/deletion/release_items.sql
\ir functions/internal/deletion/set_parents.sql
\ir functions/internal/deletion/sweep_blobs.sql
\ir functions/internal/deletion/sweep_items.sql

\ir functions/api/base/database_region.sql
\ir functions/api/base/read_page.sql
\ir functions/api/base/retire_node.sql
\ir functions/api/base/schema_version.sql

\ir functions/api/accounts/begin_export.sql
\ir functions/api/accounts/create_account_key.sql
\ir functions/api/accounts/delete_own_account.sql
\ir functions/api/accounts/describe_api_key.sql
\ir functions/api/accounts/export_account.sql
\ir functions/api/accounts/find_api_key.sql
\ir functions/api/accounts/get_account.sql
\ir functions/api/accounts/get_addresses.sql
\ir functions/api/accounts/get_deletion.sql
\ir functions/api/accounts/get_usage.sql
\ir functions/api/accounts/list_account_keys.sql
\ir functions/api/accounts/list_audit_log.sql
\ir functions/api/accounts/open_deployment.sql
\ir functions/api/accounts/read_ended_keys.sql
\ir functions/api/accounts/revoke_account_key.sql
\ir functions/api/accounts/rotate_account_key.sql
\ir functions/api/accounts/sign_up.sql
\ir functions/api/accounts/update_account.sql
\ir functions/api/accounts/use_api_key.sql

\ir functions/api/assistants/count_assistants.sql
\ir functions/api/assistants/create_assistant.sql
\ir functions/api/assistants/delete_assistant.sql
\ir functions/api/assistants/describe_graph.sql
\ir functions/api/assistants/get_assistant.sql
\ir functions/api/assistants/list_assistant_versions.sql
\ir functions/api/assistants/search_assistants.sql
\ir functions/api/assistants/set_assistant_version.sql
\ir functions/api/assistants/update_assistant.sql

\ir functions/api/threads/copy_thread.sql
\ir functions/api/threads/count_threads.sql
\ir functions/api/threads/create_thread.sql
\ir functions/api/threads/delete_thread.sql
\ir functions/api/threads/get_thread.sql
\ir functions/api/threads/get_thread_storage.sql
\ir functions/api/threads/prune_thread.sql
\ir functions/api/threads/search_threads.sql
\ir functions/api/threads/update_thread.sql

\ir functions/api/runs/cancel_run.sql
\ir functions/api/runs/cancel_runs.sql
\ir functions/api/runs/cancel_runs_by_status.sql
\ir functions/api/runs/create_run.sql
\ir functions/api/runs/create_stateless_run.sql
\ir functions/api/runs/create_stateless_runs.sql
\ir functions/api/runs/delete_run.sql
\ir functions/api/runs/find_run_thread.sql
\ir functions/api/runs/get_run.sql
\ir functions/api/runs/join_run.sql
\ir functions/api/runs/list_runs.sql

\ir functions/api/calls/create_thread_state.sql
\ir functions/api/calls/end_call.sql
\ir functions/api/calls/join_call.sql
\ir functions/api/calls/update_state.sql

\ir functions/api/checkpoints/get_history.sql
\ir functions/api/checkpoints/get_state.sql
\ir functions/api/checkpoints/read_values.sql

\ir functions/api/events/find_checkpoint_event.sql
\ir functions/api/events/find_thread_end.sql
\ir functions/api/events/read_events.sql
\ir functions/api/events/read_thread_events.sql
\ir functions/api/events/read_updates.sql

\ir functions/api/store/delete_item.sql
\ir functions/api/store/get_item.sql
\ir functions/api/store/list_namespaces.sql
\ir functions/api/store/put_item.sql
\ir functions/api/store/search_items.sql

\ir functions/worker/workers/list_node_workers.sql
\ir functions/worker/workers/mark_worker_dead.sql
\ir functions/worker/workers/notify_runs.sql
\ir functions/worker/workers/register_worker.sql
\ir functions/worker/workers/renew_worker.sql
\ir functions/worker/workers/save_graphs.sql
\ir functions/worker/workers/count_accounts.sql
\ir functions/worker/workers/set_limits.sql
\ir functions/worker/workers/sweep_workers.sql

\ir functions/worker/leases/check_leases.sql
\ir functions/worker/leases/claim_runs.sql
\ir functions/worker/leases/compose_starts.sql
\ir functions/worker/leases/fail_run.sql
\ir functions/worker/leases/read_state.sql
\ir functions/worker/leases/release_runs.sql
\ir functions/worker/leases/save_batch.sql
\ir functions/worker/leases/use_store.sql

\ir functions/worker/snapshots/read_blobs.sql
\ir functions/worker/snapshots/read_checkpoint.sql
\ir functions/worker/snapshots/read_checkpoints.sql
\ir functions/worker/snapshots/read_delta.sql

\ir functions/worker/webhooks/claim_webhooks.sql
\ir functions/worker/webhooks/save_webhooks.sql
\ir functions/worker/webhooks/sweep_webhooks.sql

\ir functions/worker/deletion/expire_threads.sql
\ir functions/worker/deletion/maintain_partitions.sql
\ir functions/worker/deletion/sweep_accounts.sql
\ir functions/worker/deletion/sweep_api_keys.sql
\ir functions/worker/deletion/sweep_audit_log.sql
\ir functions/worker/deletion/sweep_calls.sql
\ir functions/worker/deletion/sweep_copies.sql
\ir functions/worker/deletion/sweep_events.sql
\ir functions/worker/deletion/sweep_state.sql
\ir functions/worker/deletion/sweep_store.sql

\ir functions/operator/accounts/close_account.sql
\ir functions/operator/accounts/create_account.sql
\ir functions/operator/accounts/create_api_key.sql
\ir functions/operator/accounts/create_invitation.sql
\ir functions/operator/accounts/delete_account.sql
\ir functions/operator/accounts/get_region.sql
\ir functions/operator/accounts/list_accounts.sql
\ir functions/operator/accounts/list_api_keys.sql
\ir functions/operator/accounts/list_deletions.sql
\ir functions/operator/accounts/revoke_api_key.sql
\ir functions/operator/accounts/rotate_api_key.sql

-- By default all roles may call a function, also the security definer one.
revoke execute on all functions in schema agent from public;
\ir operator_functions.sql
\if :{?app_role}
    \ir grants.sql
\endif
\if :{?operator_role}
    \ir operator_grants.sql
\endif

-- Retention is a setting of the supervisors: no events are dropped here.
select 'agent: partitions of run_events changed: ' || agent.maintain_partitions('100 years');
select 'agent: functions installed: ' || count(*)
  from pg_proc p
  join pg_namespace n on n.oid = p.pronamespace
 where n.nspname = 'agent';
select 'agent: schema version ' || agent.schema_version();

set local role :"installer";
\if :may_not_create
    select format('revoke create on database %I from %I', current_database(), :'owner_role') \gexec
\endif
commit;
