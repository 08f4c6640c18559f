-- SPDX-License-Identifier: Apache-2.0
-- Cancels runs of a deployment: a run that no worker holds ends at once, a leased one gets the cancel flag.
-- Runs that are final or deleted are ignored. p_action: interrupt or rollback.
-- Returns: ids of the runs that ended and of their threads; null for none.
-- Locks:   the threads, then the queue rows, each in the order of their keys, then the records.
create or replace function agent.apply_cancels(
    p_deployment_id uuid,
    p_thread_ids uuid[],
    p_run_ids uuid[],
    p_action text
) returns text
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_hashjoin = off
set enable_mergejoin = off set plan_cache_mode = force_generic_plan
as $function$
declare
    v_waiting agent.run_queue[];
    v_row     agent.run_queue;
begin
    perform from (
            select distinct k.thread_id
              from unnest(p_thread_ids) k (thread_id)
             order by k.thread_id
            offset 0
           ) k
     cross join lateral (
            select from agent.threads t
             where t.deployment_id = p_deployment_id
               and t.thread_id = k.thread_id
               for no key update
           ) l;
    -- Excludes claims: the second of the two sees what the first committed. Here and below the state is
    -- tested outside of the lookup, so that no partial index serves it.
    perform from (
            select k.run_id
              from unnest(p_run_ids) k (run_id)
             order by k.run_id
            offset 0
           ) k
     cross join lateral (
            select from agent.run_queue q
             where q.run_id = k.run_id
               and q.deployment_id is not distinct from p_deployment_id
               for update
           ) l;

    update agent.run_queue q
       set cancel = agent.stronger_cancel(q.cancel, p_action),
           cancel_reason = coalesce(q.cancel_reason, agent.render_cancel_reason(null))
     where q.ctid = any (array(
            select x.ctid
              from unnest(p_run_ids) k (run_id)
             cross join lateral (
                    select y.ctid, y.state
                      from agent.run_queue y
                     where y.run_id = k.run_id
                       and y.deployment_id is not distinct from p_deployment_id
                     limit 1
                   ) x
             where x.state = 'leased'));
    select array_agg(x.q order by (x.q).thread_id, (x.q).thread_seq desc) into v_waiting
      from unnest(p_run_ids) k (run_id)
     cross join lateral (
            select y as q
              from agent.run_queue y
             where y.run_id = k.run_id
               and y.deployment_id is not distinct from p_deployment_id
             limit 1
           ) x
     where (x.q).state <> 'leased';

    if p_action <> 'rollback' then
        perform agent.finalize_runs(null, array(
            select agent.make_end(w, 'interrupted', p_cancel_reason => agent.render_cancel_reason(null))
              from unnest(v_waiting) w));
    else
        -- Newest first within a thread, so that none of them is promoted.
        foreach v_row in array coalesce(v_waiting, '{}')
        loop
            v_row.cancel_reason := agent.render_cancel_reason(null);
            perform agent.rollback_run(null, v_row, agent.deletion_bytes() / cardinality(v_waiting));
        end loop;
    end if;
    return (
        select string_agg(distinct c.id::text, ' ')
          from unnest(v_waiting) w
         cross join lateral (values (w.thread_id), (w.run_id)) c (id));
end
$function$;

comment on function agent.apply_cancels(uuid, uuid[], uuid[], text) is 'Cancels runs of a deployment.';
