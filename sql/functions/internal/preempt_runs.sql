-- SPDX-License-Identifier: Apache-2.0
-- What strategies interrupt and rollback do to the unfinished runs of a thread: a run that
-- no worker holds ends now, one that executes is told to stop.
-- Returns: the runs that ended.
-- Locks:   the thread, then its queue rows, then its records.
create or replace function agent.preempt_runs(
    p_account_id uuid,
    p_thread_id uuid,
    p_strategy text
) returns uuid[]
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_sort = off
set plan_cache_mode = force_generic_plan
as $function$
declare
    v_active_run_id uuid;
    v_active        agent.run_queue;
    v_blocked       agent.run_queue[];
    v_waiting       agent.run_queue[];
    v_row           agent.run_queue;
begin
    select t.active_run_id into v_active_run_id
      from agent.threads t
     where t.account_id = p_account_id
       and t.thread_id = p_thread_id
       for no key update;
    -- Excludes a claim: whoever comes second sees what the first one committed.
    select q.* into v_active
      from agent.run_queue q
     where q.run_id = v_active_run_id
       and q.account_id is not distinct from p_account_id
       for update;
    select array_agg(b.q) into v_blocked
      from (
            select q
              from agent.run_queue q
             where q.account_id = p_account_id
               and q.thread_id = p_thread_id
               and q.state = 0
             order by q.thread_seq
           ) b;
    v_waiting := case when v_active.state = 1 then array[v_active] else '{}' end || v_blocked;

    update agent.run_queue q
       set cancel = case p_strategy when 'rollback' then 2 else greatest(q.cancel, 1) end
     where q.run_id = v_active.run_id
       and q.account_id is not distinct from p_account_id
       and v_active.state = 2;

    if p_strategy = 'rollback' then
        -- The latest first, so that none is promoted on the way.
        for v_row in
            select w.* from unnest(v_waiting) w order by w.thread_seq desc
        loop
            perform agent.rollback_run(null, v_row);
        end loop;
    elsif cardinality(v_waiting) > 0 then
        perform agent.finalize_runs(null, array(
            select row(w.account_id, w.thread_id, w.run_id, 'interrupted', null, true, null)::agent.run_end
              from unnest(v_waiting) w));
    end if;
    return array(select w.run_id from unnest(v_waiting) w);
end
$function$;

comment on function agent.preempt_runs(uuid, uuid, text) is
    'Ends or cancels the unfinished runs of a thread for a new run.';
