-- SPDX-License-Identifier: Apache-2.0
-- Internal. After runs left the queue: makes the next blocked run of each thread ready, and gives
-- the thread the status that follows.
-- Returns: nothing.
-- Locks:   the caller holds the threads; takes the promoted queue rows.
create or replace function agent.settle_threads(p_ends agent.run_end[]) returns void
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_hashjoin = off
set enable_mergejoin = off set plan_cache_mode = force_generic_plan
as $function$
begin
    -- "offset 0" keeps "exists" a look-up per thread: as a join or a hash it reads all active runs.
    update agent.run_queue q
       set state = 1,
           ready_seq = nextval('agent.run_ready_seq'),
           base_checkpoint_id = n.head_checkpoint_id
      from (
            select b.ctid as row_id, t.head_checkpoint_id
              from (select distinct e.account_id, e.thread_id from unnest(p_ends) e) k
             cross join lateral (
                    select x.head_checkpoint_id
                      from agent.threads x
                     where x.account_id = k.account_id
                       and x.thread_id = k.thread_id
                     limit 1
                   ) t
             cross join lateral (
                    select w.ctid
                      from agent.run_queue w
                     where w.account_id = k.account_id
                       and w.thread_id = k.thread_id
                       and w.state = 0
                     order by w.thread_seq
                     limit 1
                   ) b
             where not exists (
                    select from agent.run_queue a
                     where a.account_id = k.account_id
                       and a.thread_id = k.thread_id
                       and a.state in (1, 2)
                    offset 0)
           ) n
     where q.ctid = n.row_id;

    update agent.threads t
       set status = case
               when exists (
                    select from agent.run_queue a
                     where a.account_id = t.account_id
                       and a.thread_id = t.thread_id
                       and a.state in (1, 2)
                    offset 0) then 'busy'
               when e.status in ('error', 'timeout') then 'error'
               when t.head_has_next then 'interrupted'
               else 'idle'
           end,
           updated_at = agent.now()
      from (
            select u.status, x.ctid as row_id
              from unnest(p_ends) u
             cross join lateral (
                    select y.ctid
                      from agent.threads y
                     where y.account_id = u.account_id
                       and y.thread_id = u.thread_id
                     limit 1
                   ) x
           ) e
     where t.ctid = e.row_id;
end
$function$;

comment on function agent.settle_threads(agent.run_end[]) is
    'Promotes the next run of threads and sets their status.';
