-- SPDX-License-Identifier: Apache-2.0
-- Saves, in one transaction, events, checkpoints, library records, reports about tasks and ends of the
-- runs of a worker. Each kind is a set of arrays of equal length, one element per row; p_event_runs and
-- p_checkpoint_runs have the position of the row's run among the runs, p_channel_checkpoints that of the checkpoint.
-- Items of a run whose lease the worker no longer holds are skipped, as are those of a run of which output before this
-- batch is not stored (agent.fence_batch). After an unclear commit the whole batch can be repeated: each row has a key.
-- A value that does not fit its type (class 22) fails the whole batch, which is then saved run by run.
-- Runs: p_batch_nos: the number of the batch among those of the lease that have more than events, from 1, or that of
--       the next one; p_is_counted: it has more; p_saved_event_seqs: the last event before it, null for none;
--       p_locks_thread: it has more than events and reports about tasks; p_last_event_seqs: of the batch, else before
--       it, null for none; p_statuses: null when it continues; p_is_failure: the worker made the end itself;
--       p_results: of calls that change nothing.
-- Events: p_event_data: JSON text; with p_event_checkpoint_ids the values of that checkpoint are shown at the path
--       p_event_paths in it, null for the values alone.
-- Checkpoints and their channels: as in agent.collect_checkpoints.
-- p_records, p_task_reports: null for none, else arrays of the runner's messages, each followed by {"d": deployment_id,
-- "r": run_id, "e": epoch}, which override equal members.
-- Returns: one row per run of the batch: saved or fenced; finished: whether the run is final; promoted: whether a run
--          that waited for any of the batch is ready now, the same in each row; elapsed_usec: the time that it took in
--          the database, without its parameters and its commit, and without locking the table of events, threads and
--          queue rows: neither the network nor a wait for another transaction says what the output costs.
-- Locks:   the table of events, the threads of runs with p_locks_thread, then the queue rows, then the run rows.
create or replace function agent.save_batch(
    p_worker_id bigint,
    p_deployment_ids uuid[],
    p_run_ids uuid[],
    p_epochs integer[],
    p_batch_nos integer[],
    p_is_counted boolean[],
    p_saved_event_seqs bigint[],
    p_locks_thread boolean[],
    p_last_event_seqs bigint[],
    p_statuses text[],
    p_errors json[],
    p_is_failure boolean[],
    p_results json[],
    p_event_runs integer[],
    p_event_seqs bigint[],
    p_event_names text[],
    p_event_data text[],
    p_event_checkpoint_ids uuid[],
    p_event_paths json[],
    p_checkpoint_runs integer[],
    p_namespaces text[],
    p_checkpoint_ids uuid[],
    p_parents uuid[],
    p_next json[],
    p_tasks json[],
    p_metadata json[],
    p_formats text[],
    p_channel_checkpoints integer[],
    p_channel_names text[],
    p_channel_kinds text[],
    p_channel_keeps integer[],
    p_channel_lengths integer[],
    p_channel_bytes bigint[],
    p_channel_contents text[],
    p_channel_elements text[],
    p_records json,
    p_task_reports json
) returns table (run_id uuid, outcome text, finished boolean, promoted boolean, elapsed_usec bigint)
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set enable_hashjoin = off set enable_mergejoin = off set plan_cache_mode = force_generic_plan
as $function$
#variable_conflict use_column
declare
    v_runs        agent.leased_run[];
    v_events      agent.batch_event[];
    v_saved       agent.leased_run[];
    v_leases      agent.run_queue[];
    v_records     agent.batch_record[];
    v_epochs      integer[] := p_epochs;
    v_held        uuid[];
    v_ended       uuid[] := '{}';
    v_only_events boolean := not true = any (p_locks_thread);
    v_promoted    boolean := false;
    v_started     timestamptz := clock_timestamp();
    v_parsed      timestamptz;
    v_locking     interval;
begin
    v_runs := (
        select array_agg(agent.make_leased_run(
                   k.deployment_id, k.run_id, k.epoch, k.locks_thread, k.status, k.error, k.seq, k.is_failure,
                   k.result, k.batch_no, k.is_counted, k.saved_seq))
          from unnest(
                   p_deployment_ids, p_run_ids, p_epochs, p_batch_nos, p_is_counted, p_saved_event_seqs, p_locks_thread,
                   p_last_event_seqs, p_statuses, p_errors, p_is_failure, p_results)
               as k (
                   deployment_id, run_id, epoch, batch_no, is_counted, saved_seq, locks_thread, seq, status, error,
                   is_failure, result));
    v_events := (
        select array_agg(agent.make_event(
                   p_deployment_ids[i.run], p_run_ids[i.run], p_epochs[i.run], i.seq, i.event,
                   case
                       when i.checkpoint_id is null then i.data
                       when i.path is not null then agent.place_values(
                           i.data::json, array(select json_array_elements_text(i.path)))
                   end, i.checkpoint_id))
          from unnest(
                   p_event_runs, p_event_seqs, p_event_names, p_event_data, p_event_checkpoint_ids, p_event_paths)
               as i (run, seq, event, data, checkpoint_id, path));

    v_parsed := clock_timestamp();
    lock table only agent.run_events in row exclusive mode;
    if not v_only_events then
        perform agent.lock_threads(p_worker_id, v_runs);
    end if;
    v_leases := agent.fence_batch(p_worker_id, v_runs);
    v_locking := clock_timestamp() - v_parsed;

    if v_leases is not null and v_events is not null then
        perform agent.save_events(v_leases, v_events);
    end if;
    if v_leases is not null and p_task_reports is not null then
        perform agent.save_tasks(v_leases, agent.parse_task_reports(p_task_reports));
    end if;

    -- The usual batch: no run ended, all leases are held.
    if v_only_events and cardinality(v_leases) = cardinality(v_runs) then
        return query
            select k.run_id, 'saved', false, false, agent.elapsed_usec(v_started, v_locking) from unnest(v_runs) k;
        return;
    end if;

    v_saved := v_runs;
    v_records := agent.parse_records(p_records);
    if cardinality(v_leases) is distinct from cardinality(v_runs) then
        -- The others may still be leased to the worker.
        v_held := array(select l.run_id from unnest(v_leases) l);
        v_saved := array(select k from unnest(v_runs) k where k.run_id = any (v_held));
        v_epochs := array(select case when k.run_id = any (v_held) then k.epoch end from unnest(v_runs) k);
        v_records := array(select r from unnest(v_records) r where r.run_id = any (v_held));
        v_ended := agent.find_ended_runs(p_worker_id, v_runs);
    end if;
    if v_records is not null then
        perform agent.save_records(p_worker_id, v_records);
    end if;
    if p_checkpoint_ids <> '{}' then
        perform agent.save_checkpoints(p_worker_id, agent.collect_checkpoints(
            p_deployment_ids, p_run_ids, v_epochs, p_checkpoint_runs, p_namespaces, p_checkpoint_ids, p_parents,
            p_next, p_tasks, p_metadata, p_formats, p_channel_checkpoints, p_channel_names, p_channel_kinds,
            p_channel_keeps, p_channel_lengths, p_channel_bytes, p_channel_contents, p_channel_elements));
    end if;
    if not v_only_events then
        v_promoted := agent.apply_ends(p_worker_id, v_saved);
    end if;

    return query
        select k.run_id,
               case when v_held is null or k.run_id = any (v_held || v_ended) then 'saved' else 'fenced' end,
               (k.status is not null and (v_held is null or k.run_id = any (v_held))) or k.run_id = any (v_ended),
               v_promoted, agent.elapsed_usec(v_started, v_locking)
          from unnest(v_runs) k;
end
$function$;

comment on function agent.save_batch(
    bigint, uuid[], uuid[], integer[], integer[], boolean[], bigint[], boolean[], bigint[], text[], json[], boolean[],
    json[], integer[], bigint[], text[], text[], uuid[], json[], integer[], text[], uuid[], uuid[], json[], json[],
    json[], text[], integer[], text[], text[], integer[], integer[], bigint[], text[], text[], json, json) is
    'Saves events, checkpoints, tasks and ends of a worker''s runs.';
