-- SPDX-License-Identifier: Apache-2.0
-- Cancels runs of any threads of an account: those that no worker holds end now, those that
-- execute are told to stop. Runs that are final or gone are passed over.
-- Returns: ids of the runs that ended and of their threads; null for none.
-- Locks:   the threads, then the queue rows, each in the order of their keys, then the records.
create or replace function agent.apply_cancels(
    p_account_id uuid,
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
             where t.account_id = p_account_id
               and t.thread_id = k.thread_id
               for no key update
           ) l;
    -- Excludes claims: whoever comes second sees what the first one committed. Here and below the state
    -- is asked for outside of the look-up, where no partial index can answer.
    perform from (
            select k.run_id
              from unnest(p_run_ids) k (run_id)
             order by k.run_id
            offset 0
           ) k
     cross join lateral (
            select from agent.run_queue q
             where q.run_id = k.run_id
               and q.account_id is not distinct from p_account_id
               for update
           ) l;

    update agent.run_queue q
       set cancel = case p_action when 'rollback' then 2 else greatest(q.cancel, 1) end
     where q.ctid = any (array(
            select x.ctid
              from unnest(p_run_ids) k (run_id)
             cross join lateral (
                    select y.ctid, y.state
                      from agent.run_queue y
                     where y.run_id = k.run_id
                       and y.account_id is not distinct from p_account_id
                     limit 1
                   ) x
             where x.state = 2));
    select array_agg(x.q order by (x.q).thread_id, (x.q).thread_seq desc) into v_waiting
      from unnest(p_run_ids) k (run_id)
     cross join lateral (
            select y as q
              from agent.run_queue y
             where y.run_id = k.run_id
               and y.account_id is not distinct from p_account_id
             limit 1
           ) x
     where (x.q).state <> 2;

    if p_action <> 'rollback' then
        perform agent.finalize_runs(null, array(
            select row(w.account_id, w.thread_id, w.run_id, 'interrupted', null, true, null)::agent.run_end
              from unnest(v_waiting) w));
    else
        -- The latest of a thread first, so that none is promoted on the way.
        foreach v_row in array coalesce(v_waiting, '{}')
        loop
            perform agent.rollback_run(null, v_row);
        end loop;
    end if;
    return (
        select string_agg(distinct c.id::text, ' ')
          from unnest(v_waiting) w
         cross join lateral (values (w.thread_id), (w.run_id)) c (id));
end
$function$;

comment on function agent.apply_cancels(uuid, uuid[], uuid[], text) is 'Cancels runs of any threads.';
