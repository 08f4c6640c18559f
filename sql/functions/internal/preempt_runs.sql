-- SPDX-License-Identifier: Apache-2.0
-- Applies strategy interrupt or rollback to the unfinished runs of a thread: a run that no worker holds ends
-- at once, a leased one gets the cancel flag. An active call goes on: it ends within seconds.
-- Returns: the runs that ended.
-- Locks:   the thread, then its queue rows, then its records.
create or replace function agent.preempt_runs(
    p_deployment_id uuid,
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
     where t.deployment_id = p_deployment_id
       and t.thread_id = p_thread_id
       for no key update;
    -- Excludes a claim: the second of the two sees what the first committed.
    select q.* into v_active
      from agent.run_queue q
     where q.run_id = v_active_run_id
       and q.deployment_id is not distinct from p_deployment_id
       and q.op is null
       for update;
    select array_agg(b.q) into v_blocked
      from (
            select q
              from agent.run_queue q
             where q.deployment_id = p_deployment_id
               and q.thread_id = p_thread_id
               and q.state = 'blocked'
             order by q.thread_seq
           ) b;
    v_waiting := case when v_active.state = 'ready' then array[v_active] else '{}' end || v_blocked;

    update agent.run_queue q
       set cancel = agent.stronger_cancel(q.cancel, p_strategy)
     where q.run_id = v_active.run_id
       and q.deployment_id is not distinct from p_deployment_id
       and v_active.state = 'leased';

    if p_strategy = 'rollback' then
        -- Newest first, so that none of them is promoted.
        for v_row in
            select w.* from unnest(v_waiting) w order by w.thread_seq desc
        loop
            perform agent.rollback_run(null, v_row);
        end loop;
    elsif cardinality(v_waiting) > 0 then
        perform agent.finalize_runs(null, array(
            select agent.make_end(w, 'interrupted')
              from unnest(v_waiting) w));
    end if;
    return array(select w.run_id from unnest(v_waiting) w);
end
$function$;

comment on function agent.preempt_runs(uuid, uuid, text) is
    'Ends or cancels the unfinished runs of a thread for a new run.';
