-- SPDX-License-Identifier: Apache-2.0
-- Brings a database to the current version: applies the missing migrations, then replaces all functions,
-- in one transaction. Can be repeated; a failure changes nothing. Of two first installations at the same time
-- one fails.
--
--   psql -X -d DATABASE -f sql/install.sql [-v app_role=ROLE] [-v owner_role=ROLE]
--
-- Run by a superuser: owner_role (agent_owner) owns the schema and is created when it is missing.
-- Run by a role that may create schemas in the database: that role owns the schema, or owner_role, of
-- which it must be a member. app_role is granted the privileges of a server.
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
\ir migrations/next_up.sql

-- A function comes after those that it inlines, and one in SQL after all that it calls.
\ir functions/inline/now.sql
\ir functions/inline/render_time.sql
\ir functions/inline/render_cancel_reason.sql
\ir functions/inline/render_run.sql
\ir functions/inline/pick_command.sql
\ir functions/inline/stored_bytes.sql
\ir functions/inline/stored_run_bytes.sql
\ir functions/inline/value_bytes.sql
\ir functions/inline/run_bytes.sql
\ir functions/inline/append_values.sql
\ir functions/inline/render_thread.sql
\ir functions/inline/render_assistant.sql
\ir functions/inline/render_assistant_version.sql
\ir functions/inline/matches_assistant.sql
\ir functions/inline/settings_bytes.sql
\ir functions/inline/find_serving_workers.sql
\ir functions/inline/render_checkpoint.sql
\ir functions/inline/render_place.sql
\ir functions/internal/find_parents.sql
\ir functions/internal/has_notation_name.sql
\ir functions/inline/is_notation.sql
\ir functions/internal/cut_elements.sql
\ir functions/inline/read_items.sql
\ir functions/inline/find_children.sql
\ir functions/inline/find_earlier.sql
\ir functions/inline/find_run_metadata.sql
\ir functions/inline/find_run.sql
\ir functions/inline/find_swept_runs.sql
\ir functions/inline/find_checkpoint.sql
\ir functions/inline/find_run_checkpoints.sql
\ir functions/inline/find_channels.sql
\ir functions/inline/has_bare_value.sql
\ir functions/inline/compose_values.sql
\ir functions/inline/compose_bounded_values.sql
\ir functions/inline/compose_event.sql
\ir functions/inline/choose_start.sql
\ir functions/inline/compose_checkpoint.sql
\ir functions/inline/compose_start.sql
\ir functions/inline/compose_call.sql
\ir functions/inline/start_bytes.sql
\ir functions/inline/split_values.sql
\ir functions/inline/merge_context.sql
\ir functions/internal/drop_identity.sql
\ir functions/inline/merge_config.sql
\ir functions/inline/find_lease.sql
\ir functions/inline/webhook_delay.sql
\ir functions/inline/jitter.sql
\ir functions/inline/page_bytes.sql
\ir functions/inline/read_ttl.sql
\ir functions/inline/expiry_delay.sql
\ir functions/inline/sweep_delay.sql
\ir functions/inline/split_digests.sql
\ir functions/inline/render_reference.sql
\ir functions/inline/render_snapshot.sql
\ir functions/inline/find_write_sweep.sql
\ir functions/inline/find_writes.sql
\ir functions/inline/deletion_bytes.sql
\ir functions/inline/stronger_cancel.sql
\ir functions/inline/make_end.sql
\ir functions/inline/make_leased_run.sql
\ir functions/inline/make_event.sql
\ir functions/inline/next_receiver.sql
\ir functions/inline/find_ready_graphs.sql
\ir functions/inline/next_webhook_deployment.sql
\ir functions/inline/namespace_end.sql
\ir functions/inline/is_live_item.sql
\ir functions/inline/render_item.sql
\ir functions/inline/render_schemas.sql
\ir functions/inline/find_threads.sql

\ir functions/internal/find_snapshot.sql
\ir functions/internal/find_call_checkpoint.sql
\ir functions/internal/is_saved_update.sql
\ir functions/internal/read_words.sql
\ir functions/internal/read_thread_filter.sql
\ir functions/internal/needs_sort.sql
\ir functions/internal/render_interrupts.sql
\ir functions/internal/concat_objects.sql
\ir functions/internal/pick_members.sql
\ir functions/internal/fit_deletion.sql
\ir functions/internal/place_values.sql
\ir functions/internal/render_tasks.sql
\ir functions/inline/render_checkpoint_metadata.sql
\ir functions/internal/measure_channels.sql
\ir functions/internal/render_state.sql
\ir functions/internal/compose_thread.sql
\ir functions/internal/prepend_ttl.sql
\ir functions/internal/find_namespace.sql
\ir functions/internal/add_subgraphs.sql
\ir functions/internal/find_stored_run.sql
\ir functions/internal/check_assistant.sql
\ir functions/internal/check_run_metadata.sql
\ir functions/internal/add_assistant_version.sql
\ir functions/internal/change_assistant.sql
\ir functions/internal/create_system_assistant.sql
\ir functions/internal/is_graph_served.sql
\ir functions/internal/list_served_graphs.sql
\ir functions/internal/refuse_assistant.sql
\ir functions/internal/find_assistant.sql
\ir functions/internal/compose_feedback.sql
\ir functions/internal/enqueue_run.sql
\ir functions/internal/enqueue_stateless_run.sql
\ir functions/internal/last_event_seq.sql
\ir functions/internal/add_to_values.sql
\ir functions/internal/compose_result.sql
\ir functions/internal/compose_gap.sql
\ir functions/internal/lock_threads.sql
\ir functions/internal/fence_leases.sql
\ir functions/internal/lock_leases.sql
\ir functions/internal/promote_next_runs.sql
\ir functions/internal/promote_delayed_runs.sql
\ir functions/internal/lock_ready_runs.sql
\ir functions/internal/record_webhooks.sql
\ir functions/internal/choose_call_result.sql
\ir functions/internal/finish_calls.sql
\ir functions/internal/finalize_runs.sql
\ir functions/internal/move_head.sql
\ir functions/internal/skip_checkpoints.sql
\ir functions/internal/delete_tasks.sql
\ir functions/internal/delete_events.sql
\ir functions/internal/save_blobs.sql
\ir functions/internal/release_items.sql
\ir functions/internal/delete_writes.sql
\ir functions/internal/attach_children.sql
\ir functions/internal/discard_rows.sql
\ir functions/internal/discard_checkpoints.sql
\ir functions/internal/delete_run_state.sql
\ir functions/internal/delete_records.sql
\ir functions/internal/sweep_blobs.sql
\ir functions/internal/delete_items.sql
\ir functions/internal/delete_state.sql
\ir functions/internal/may_continue_run.sql
\ir functions/internal/discard_run.sql
\ir functions/internal/copy_ranges.sql
\ir functions/internal/copy_checkpoints.sql
\ir functions/internal/copy_items.sql
\ir functions/internal/copy_snapshots.sql
\ir functions/internal/find_next_namespace.sql
\ir functions/internal/copy_history.sql
\ir functions/internal/copy_blobs.sql
\ir functions/internal/rollback_run.sql
\ir functions/internal/requeue_run.sql
\ir functions/internal/preempt_runs.sql
\ir functions/internal/apply_cancels.sql
\ir functions/internal/release_leased_runs.sql
\ir functions/internal/parse_batch.sql
\ir functions/internal/count_bytes.sql
\ir functions/internal/count_common.sql
\ir functions/internal/cut_channel.sql
\ir functions/internal/fork_list.sql
\ir functions/internal/derive_channel.sql
\ir functions/internal/insert_items.sql
\ir functions/internal/insert_checkpoints.sql
\ir functions/internal/save_checkpoints.sql
\ir functions/internal/parse_reference.sql
\ir functions/internal/check_record.sql
\ir functions/internal/list_uses.sql
\ir functions/internal/save_snapshot.sql
\ir functions/internal/save_writes.sql
\ir functions/internal/save_part.sql
\ir functions/internal/save_records.sql
\ir functions/internal/find_last_snapshot.sql
\ir functions/internal/find_delta_channels.sql
\ir functions/internal/prune_state.sql
\ir functions/internal/read_reference.sql
\ir functions/internal/open_delta.sql
\ir functions/internal/compose_delta.sql
\ir functions/internal/read_references.sql
\ir functions/internal/read_writes.sql
\ir functions/internal/choose_end.sql
\ir functions/internal/apply_ends.sql
\ir functions/internal/release_webhooks.sql
\ir functions/internal/webhook_turns.sql
\ir functions/internal/lock_webhooks.sql
\ir functions/internal/create_partition.sql
\ir functions/internal/refuse_final_change.sql
\ir functions/internal/save_events.sql
\ir functions/internal/save_tasks.sql
\ir functions/internal/read_namespace.sql
\ir functions/internal/split_filter.sql
\ir functions/internal/split_members.sql
\ir functions/internal/has_members.sql
\ir functions/internal/find_items.sql
\ir functions/internal/find_namespaces.sql
\ir functions/internal/read_item.sql
\ir functions/internal/compose_record.sql
\ir functions/internal/refresh_items.sql
\ir functions/internal/put_items.sql
\ir functions/internal/read_store.sql

\ir functions/api/schema_version.sql
\ir functions/api/get_assistant.sql
\ir functions/api/describe_graph.sql
\ir functions/api/count_assistants.sql
\ir functions/api/search_assistants.sql
\ir functions/api/create_assistant.sql
\ir functions/api/update_assistant.sql
\ir functions/api/list_assistant_versions.sql
\ir functions/api/set_assistant_version.sql
\ir functions/api/open_deployment.sql
\ir functions/api/retire_node.sql
\ir functions/api/get_thread.sql
\ir functions/api/get_thread_storage.sql
\ir functions/api/search_threads.sql
\ir functions/api/count_threads.sql
\ir functions/api/update_thread.sql
\ir functions/api/create_thread.sql
\ir functions/api/delete_thread.sql
\ir functions/api/copy_thread.sql
\ir functions/api/prune_thread.sql
\ir functions/api/delete_assistant.sql
\ir functions/api/create_run.sql
\ir functions/api/create_stateless_run.sql
\ir functions/api/create_stateless_runs.sql
\ir functions/api/find_run_thread.sql
\ir functions/api/find_checkpoint_event.sql
\ir functions/api/get_run.sql
\ir functions/api/list_runs.sql
\ir functions/api/read_page.sql
\ir functions/api/delete_run.sql
\ir functions/api/cancel_run.sql
\ir functions/api/cancel_runs.sql
\ir functions/api/cancel_runs_by_status.sql
\ir functions/api/join_run.sql
\ir functions/api/get_state.sql
\ir functions/api/get_history.sql
\ir functions/api/read_values.sql
\ir functions/internal/find_place.sql
\ir functions/internal/enqueue_update.sql
\ir functions/api/update_state.sql
\ir functions/api/create_thread_state.sql
\ir functions/api/join_call.sql
\ir functions/api/end_call.sql
\ir functions/api/read_events.sql
\ir functions/api/read_updates.sql
\ir functions/api/read_thread_events.sql
\ir functions/api/find_thread_end.sql
\ir functions/api/put_item.sql
\ir functions/api/get_item.sql
\ir functions/api/delete_item.sql
\ir functions/api/search_items.sql
\ir functions/api/list_namespaces.sql

\ir functions/worker/register_worker.sql
\ir functions/worker/list_node_workers.sql
\ir functions/worker/save_graphs.sql
\ir functions/worker/renew_worker.sql
\ir functions/worker/mark_worker_dead.sql
\ir functions/worker/fail_run.sql
\ir functions/worker/sweep_workers.sql
\ir functions/worker/claim_runs.sql
\ir functions/worker/compose_starts.sql
\ir functions/worker/read_state.sql
\ir functions/worker/read_checkpoint.sql
\ir functions/worker/read_checkpoints.sql
\ir functions/worker/read_delta.sql
\ir functions/worker/read_blobs.sql
\ir functions/worker/save_batch.sql
\ir functions/worker/release_runs.sql
\ir functions/worker/check_leases.sql
\ir functions/worker/notify_runs.sql
\ir functions/worker/maintain_partitions.sql
\ir functions/worker/expire_threads.sql
\ir functions/worker/sweep_state.sql
\ir functions/worker/sweep_copies.sql
\ir functions/worker/sweep_events.sql
\ir functions/worker/sweep_calls.sql
\ir functions/worker/sweep_store.sql
\ir functions/worker/use_store.sql
\ir functions/worker/claim_webhooks.sql
\ir functions/worker/save_webhooks.sql
\ir functions/worker/sweep_webhooks.sql

-- By default all roles may call a function, also the security definer one.
revoke execute on all functions in schema agent from public;
\if :{?app_role}
    \ir grants.sql
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
