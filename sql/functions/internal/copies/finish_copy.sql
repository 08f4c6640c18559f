-- SPDX-License-Identifier: Apache-2.0
-- Creates the thread of a copy of which nothing is left to copy; it counts as a thread already (agent.begin_copy).
-- p_ttl: that of the thread that was copied.
-- Returns: what the row of its pending writes takes, without indexes.
-- Locks:   the new rows; the caller holds the row of the copy.
create or replace function agent.finish_copy(
    p_copy agent.thread_copies,
    p_ttl interval,
    p_now timestamptz
) returns bigint
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $function$
declare
    -- The header of a row and its values of fixed length, which agent.compose_measure counts too.
    c_fixed constant integer := 128;
    v_bytes bigint;
begin
    insert into agent.threads (
        deployment_id, thread_id, status, run_seq, assistant_id, metadata, config, head_checkpoint_id, head_run_id,
        head_has_next, created_at, updated_at, state_updated_at, ttl)
    values (
        p_copy.deployment_id, p_copy.thread_id, case when p_copy.head_has_next then 'interrupted' else 'idle' end,
        p_copy.run_seq, p_copy.assistant_id, p_copy.metadata || jsonb_build_object('thread_id', p_copy.thread_id),
        p_copy.config, p_copy.head_checkpoint_id, p_copy.head_run_id, p_copy.head_has_next, p_now, p_now,
        case when p_copy.head_checkpoint_id is not null then p_now end, p_ttl);
    -- Only the head shows its pending writes; those of the source are deleted with the runs that sent them.
    with report as (
        select r.task, r.saved_at
          from agent.find_task_report(
                   p_copy.deployment_id, p_copy.source_id, '', p_copy.head_checkpoint_id, agent.pending_id(),
                   p_copy.started_at) r
    ),
    copied as (
        insert into agent.checkpoint_tasks (
            deployment_id, thread_id, checkpoint_id, task_id, run_id, checkpoint_ns, task, saved_at)
        select p_copy.deployment_id, p_copy.thread_id, p_copy.head_checkpoint_id, agent.pending_id(), p_copy.thread_id,
               '', r.task, r.saved_at
          from report r
    )
    select coalesce(sum(c_fixed + pg_column_size(r.task)), 0) into v_bytes
      from report r;
    if p_ttl is not null then
        insert into agent.thread_expiries (deployment_id, thread_id, expires_at)
        values (p_copy.deployment_id, p_copy.thread_id, p_now + p_ttl);
    end if;
    delete from agent.thread_copies c
     where c.deployment_id = p_copy.deployment_id
       and c.thread_id = p_copy.thread_id;
    return v_bytes;
end
$function$;

comment on function agent.finish_copy(agent.thread_copies, interval, timestamptz) is 'Creates the thread of a copy.';
