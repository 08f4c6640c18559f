-- SPDX-License-Identifier: Apache-2.0
-- Deletes up to 25 expired threads, beginning none after 50 ms, and of a large one only a piece
-- (agent.delete_thread), so that a backlog is many short transactions: call again while any are returned. A thread
-- whose deletion exceeds statement_timeout is postponed by an hour. Concurrent callers do not wait for each other.
-- Returns: the threads that were deleted, of which a piece was deleted, or that were postponed.
-- Locks:   the threads, skipping locked ones, each with its rows.
create or replace function agent.expire_threads() returns setof uuid
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set enable_sort = off set plan_cache_mode = force_generic_plan
as $function$
declare
    v_now        timestamptz := agent.now();
    v_end        timestamptz := clock_timestamp() + interval '50 milliseconds';
    v_deployment_id uuid;
    v_thread_id  uuid;
    v_status     text;
begin
    -- Only the holder of a thread writes its expiry. Locked threads do not count among the 25, since the
    -- caller would get the same ones again and again.
    for v_deployment_id, v_thread_id, v_status in
        select e.deployment_id, e.thread_id, t.status
          from agent.thread_expiries e
         cross join lateral (
                select x.status
                  from agent.threads x
                 where x.deployment_id = e.deployment_id
                   and x.thread_id = e.thread_id
                   for update skip locked
               ) t
         where e.expires_at <= v_now
         order by e.expires_at
         limit 25
    loop
        return next v_thread_id;
        if v_status = 'busy' then
            -- The end of its run sets the time again; until then it must not delay other threads.
            update agent.thread_expiries e
               set expires_at = v_now + agent.expiry_delay()
             where e.deployment_id = v_deployment_id
               and e.thread_id = v_thread_id;
            continue;
        end if;
        begin
            perform from agent.thread_expiries e
              where e.deployment_id = v_deployment_id
                and e.thread_id = v_thread_id
                and e.expires_at <= v_now
                for update;
            if found then
                perform agent.delete_thread(v_deployment_id, v_thread_id);
            end if;
        exception when query_canceled then
            update agent.thread_expiries e
               set expires_at = v_now + interval '1 hour'
             where e.deployment_id = v_deployment_id
               and e.thread_id = v_thread_id;
            return;
        end;
        exit when clock_timestamp() > v_end;
    end loop;
end
$function$;

comment on function agent.expire_threads() is 'Deletes expired threads.';
