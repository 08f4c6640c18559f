-- SPDX-License-Identifier: Apache-2.0
-- Deletes up to 25 threads whose time is over, so that a large backlog is many short transactions:
-- call again while there are 25. Two callers do not wait for each other.
-- Returns: the threads that were deleted or put off.
-- Locks:   the threads, skipping locked ones, each with its rows.
create or replace function agent.expire_threads() returns setof uuid
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set enable_sort = off set plan_cache_mode = force_generic_plan
as $function$
declare
    v_now        timestamptz := agent.now();
    v_account_id uuid;
    v_thread_id  uuid;
    v_status     text;
begin
    -- Only who holds a thread writes its expiry. Threads that others hold are not among the 25: the caller
    -- would come again and again for the same ones.
    for v_account_id, v_thread_id, v_status in
        select e.account_id, e.thread_id, t.status
          from agent.thread_expiries e
         cross join lateral (
                select x.status
                  from agent.threads x
                 where x.account_id = e.account_id
                   and x.thread_id = e.thread_id
                   for update skip locked
               ) t
         where e.expires_at <= v_now
         order by e.expires_at
         limit 25
    loop
        return next v_thread_id;
        if v_status = 'busy' then
            -- Its end sets the time again; until then it must not stand in front of others.
            update agent.thread_expiries e
               set expires_at = v_now + interval '120 seconds'
             where e.account_id = v_account_id
               and e.thread_id = v_thread_id;
            continue;
        end if;
        delete from agent.thread_expiries e
         where e.account_id = v_account_id
           and e.thread_id = v_thread_id
           and e.expires_at <= v_now;
        if found then
            perform agent.delete_thread(v_account_id, v_thread_id);
        end if;
    end loop;
end
$function$;

comment on function agent.expire_threads() is 'Deletes threads whose time is over.';
