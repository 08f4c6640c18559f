-- SPDX-License-Identifier: Apache-2.0
-- Begins the copy of a thread: from then on it counts as a thread of the account, until its rows are swept. An
-- abandoned copy counts too: clients that begin copies and leave would otherwise store far more than their limit.
-- Returns: the copy; null when the thread does not exist.
-- Locks:   the new row, then one row of the count of an account with a limit.
create or replace function agent.begin_copy(
    p_deployment_id uuid,
    p_thread_id uuid,
    p_copy_id uuid,
    p_now timestamptz
) returns agent.thread_copies
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $function$
declare
    v_copy agent.thread_copies;
begin
    insert into agent.thread_copies as c (
        deployment_id, thread_id, source_id, source_created_at, state_deletions, assistant_id, metadata, config,
        head_checkpoint_id, head_run_id, head_has_next, checkpoint_ns, next_checkpoint_id, snapshot_ns,
        next_snapshot_id, run_seq, started_at, expires_at)
    select t.deployment_id, p_copy_id, t.thread_id, t.created_at, t.state_deletions, t.assistant_id, t.metadata,
           t.config, t.head_checkpoint_id, t.head_run_id, t.head_has_next, '', t.head_checkpoint_id, '',
           agent.find_snapshot(p_deployment_id, p_thread_id, t.head_checkpoint_id, p_now), t.run_seq, p_now,
           p_now + interval '2 minutes'
      from agent.threads t
     where t.deployment_id = p_deployment_id
       and t.thread_id = p_thread_id
       and not t.is_deleted
    returning c.* into v_copy;
    if v_copy.thread_id is not null and exists (select from agent.account_counts) then
        perform agent.change_count(p_deployment_id, 'threads', 1);
    end if;
    return v_copy;
end
$function$;

comment on function agent.begin_copy(uuid, uuid, uuid, timestamptz) is 'Begins the copy of a thread.';
