-- SPDX-License-Identifier: Apache-2.0
-- Applies strategy interrupt or rollback to the unfinished runs of a thread: a run that no worker holds ends
-- at once, a leased one gets the cancel flag. An active call continues: it ends within seconds. Up to
-- agent.deletion_bytes(), of which each waiting run counts 40,000, with rollback 100,000, and its request:
-- newest first, so that none of them is promoted; the active one is the last. p_run_id: the new run. p_before:
-- null at the first call.
-- Returns: ended: the runs that ended; before: null when all are; else call again with it as p_before, in another
--          transaction. It falls with each call, so runs that are created between the calls continue.
-- Locks:   the thread, then its queue rows, then its records.
create or replace function agent.preempt_runs(
    p_deployment_id uuid,
    p_thread_id uuid,
    p_strategy text,
    p_run_id uuid,
    p_before bigint,
    out ended uuid[],
    out before bigint
)
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_sort = off
set plan_cache_mode = force_generic_plan
as $function$
declare
    v_active_run_id uuid;
    v_active        agent.run_queue;
    v_waiting       agent.run_queue[] := '{}';
    v_row           agent.run_queue;
    v_before        bigint := coalesce(p_before, 9223372036854775807);
    v_left          bigint := agent.deletion_bytes();
    v_reason        text := 'superseded: by run ' || p_run_id;
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
       and q.thread_seq < v_before
       for update;
    for v_row in
        select q.*
          from agent.run_queue q
         where q.deployment_id = p_deployment_id
           and q.thread_id = p_thread_id
           and q.state = 'blocked'
           and q.thread_seq < v_before
         order by q.thread_seq desc
    loop
        if v_left <= 0 then
            before := v_row.thread_seq + 1;
            exit;
        end if;
        v_left := v_left - case when p_strategy = 'rollback' then 100000 else 40000 end
            - coalesce(v_row.request_bytes, 0);
        v_waiting := v_waiting || v_row;
    end loop;

    if before is null then
        v_waiting := v_waiting || case when v_active.state = 'ready' then array[v_active] end;
        update agent.run_queue q
           set cancel = agent.stronger_cancel(q.cancel, p_strategy),
               cancel_reason = coalesce(q.cancel_reason, v_reason)
         where q.run_id = v_active.run_id
           and q.deployment_id is not distinct from p_deployment_id
           and v_active.state = 'leased';
    end if;
    if p_strategy = 'rollback' then
        foreach v_row in array v_waiting
        loop
            v_row.cancel_reason := v_reason;
            perform agent.rollback_run(null, v_row, agent.deletion_bytes() / cardinality(v_waiting));
        end loop;
    elsif cardinality(v_waiting) > 0 then
        perform agent.finalize_runs(null, array(
            select agent.make_end(w, 'interrupted', p_cancel_reason => v_reason)
              from unnest(v_waiting) w));
    end if;
    ended := array(select w.run_id from unnest(v_waiting) w);
end
$function$;

comment on function agent.preempt_runs(uuid, uuid, text, uuid, bigint) is
    'Ends or cancels the unfinished runs of a thread for a new run.';
