-- SPDX-License-Identifier: Apache-2.0
-- Releases the runs of a runner that died or that its supervisor drains. p_counted: the attempts count.
-- p_items: [{"d": deployment_id, "r": run_id, "e": epoch}, ...]. p_reason completes the sentence "at the last one
-- ...". p_max_shared: runs, itself included, that may share a runner with one of these from now on; -1: any
-- number again; null: unchanged.
-- Returns: one row per item: requeued, error (no attempts left: RunGivenUpError), interrupted, rolled_back (a
--          cancel was requested), success (a call whose update was saved), gone (no longer held).
-- Locks:   the threads, then the queue rows, then the run rows.
create or replace function agent.release_runs(
    p_worker_id bigint,
    p_items json,
    p_counted boolean,
    p_reason text,
    p_max_shared smallint
) returns table (run_id uuid, thread_id uuid, outcome text)
language plpgsql volatile security invoker set search_path = ''
as $function$
begin
    return query
        select l.run_id, l.thread_id, l.outcome
          from agent.release_leased_runs(
                   p_worker_id,
                   array(
                       select agent.make_leased_run(i.d, i.r, i.e)
                         from json_to_recordset(p_items) as i (d uuid, r uuid, e integer)),
                   p_counted, 'RunGivenUpError', p_reason, p_max_shared) l;
end
$function$;

comment on function agent.release_runs(bigint, json, boolean, text, smallint) is
    'Releases leased runs of a dead or draining runner.';
