-- SPDX-License-Identifier: Apache-2.0
-- For runs that have left the queue: when one was the active run of its thread, makes the next blocked run
-- ready and sets the status of the thread: busy with a next run, error after error or timeout, interrupted
-- when the head has a next node, else idle. A thread without unfinished runs is scheduled for deletion: a temporary
-- one after agent.expiry_delay(), another one after its ttl, if it has one.
-- Returns: whether a run became ready.
-- Locks:   the caller holds the threads; takes their expiries and the promoted queue rows.
create or replace function agent.promote_next_runs(p_ends agent.run_end[]) returns boolean
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_hashjoin = off
set enable_mergejoin = off set enable_sort = off set plan_cache_mode = force_generic_plan
as $function$
declare
    v_now         timestamptz := agent.now();
    v_expiries    agent.thread_expiries[];
    v_deployments uuid[];
    v_runs        uuid[];
    v_heads       uuid[];
begin
    with moved as (
        update agent.threads t
           set active_run_id = x.next_run_id,
               status = case
                   when x.next_run_id is not null then 'busy'
                   when x.status in ('error', 'timeout') then 'error'
                   when t.head_has_next then 'interrupted'
                   else 'idle'
               end,
               updated_at = v_now
          from (
                select e.run_id, e.status, k.ctid as row_id, n.run_id as next_run_id
                  from unnest(p_ends) e
                 cross join lateral (
                        select y.ctid
                          from agent.threads y
                         where y.deployment_id = e.deployment_id
                           and y.thread_id = e.thread_id
                         limit 1
                       ) k
                  left join lateral (
                        select w.run_id
                          from agent.run_queue w
                         where w.deployment_id = e.deployment_id
                           and w.thread_id = e.thread_id
                           and w.state = 'blocked'
                         order by w.thread_seq
                         limit 1
                       ) n on true
               ) x
         where t.ctid = x.row_id
           and t.active_run_id = x.run_id
        returning t.deployment_id, t.thread_id, t.active_run_id, t.head_checkpoint_id,
                  case when t.temporary then agent.expiry_delay() else t.ttl end as ttl
    )
    select array_agg(row(m.deployment_id, m.thread_id, v_now + m.ttl)::agent.thread_expiries)
               filter (where m.ttl is not null and m.active_run_id is null),
           array_agg(m.deployment_id) filter (where m.active_run_id is not null),
           array_agg(m.active_run_id) filter (where m.active_run_id is not null),
           array_agg(m.head_checkpoint_id) filter (where m.active_run_id is not null)
      into v_expiries, v_deployments, v_runs, v_heads
      from moved m;

    -- Most runs end on a thread that is kept and has no other run: one statement for all would prepare these writes.
    if v_expiries is not null then
        insert into agent.thread_expiries (deployment_id, thread_id, expires_at)
        select i.deployment_id, i.thread_id, i.expires_at
          from unnest(v_expiries) i
            on conflict (deployment_id, thread_id) do update set expires_at = excluded.expires_at;
    end if;
    if v_runs is null then
        return false;
    end if;
    update agent.run_queue q
       set state = 'ready',
           ready_seq = nextval('agent.run_ready_seq'),
           base_checkpoint_id = p.head_checkpoint_id
      from (
            select i.ctid as row_id, s.head_checkpoint_id
              from unnest(v_deployments, v_runs, v_heads) as s (deployment_id, run_id, head_checkpoint_id)
             cross join lateral (
                    select y.ctid
                      from agent.run_queue y
                     where y.run_id = s.run_id
                       and y.deployment_id is not distinct from s.deployment_id
                     limit 1
                   ) i
           ) p
     where q.ctid = p.row_id;
    return found;
end
$function$;

comment on function agent.promote_next_runs(agent.run_end[]) is
    'Promotes the next runs of threads and sets the status of the threads.';
