-- SPDX-License-Identifier: Apache-2.0
-- Counts the next threads of an account, and the copies of threads that are under way or given up, in the order of
-- deployments and threads: p_most at most. p_deployment_id, p_thread_id: the thread to begin with, which may have been
-- deleted; null: the first one.
-- Returns: how many; the next thread after them, null when there is none.
-- Locks:   none.
create or replace function agent.count_next_threads(
    p_account_id uuid,
    p_deployment_id uuid,
    p_thread_id uuid,
    p_most integer,
    out value bigint,
    out at_deployment_id uuid,
    out at_thread_id uuid
)
language plpgsql stable security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off
set plan_cache_mode = force_generic_plan
as $function$
declare
    c_nil   constant uuid := '00000000-0000-0000-0000-000000000000';
    v_from  uuid;
    v_found bigint;
begin
    value := 0;
    for at_deployment_id in
        select d.deployment_id
          from agent.deployments d
         where d.account_id = p_account_id
           and d.deployment_id >= coalesce(p_deployment_id, c_nil)
         order by d.deployment_id
    loop
        v_from := case when at_deployment_id = p_deployment_id then p_thread_id else c_nil end;
        select count(*), (max(x.thread_id::text) filter (where x.number > p_most - value))::uuid
          into v_found, at_thread_id
          from (
                select u.thread_id, row_number() over (order by u.thread_id) as number
                  from (
                        -- Each has its limit, so that none is read beyond what is counted here.
                        (select t.thread_id
                           from agent.threads t
                          where t.deployment_id = at_deployment_id
                            and t.thread_id >= v_from
                          order by t.thread_id
                          limit p_most - value + 1)
                        union all
                        (select c.thread_id
                           from agent.thread_copies c
                          where c.deployment_id = at_deployment_id
                            and c.thread_id >= v_from
                          order by c.thread_id
                          limit p_most - value + 1)
                       ) u
                 order by u.thread_id
                 limit p_most - value + 1
               ) x;
        value := least(value + v_found, p_most);
        if at_thread_id is not null then
            return;
        end if;
    end loop;
    at_deployment_id := null;
end
$function$;

comment on function agent.count_next_threads(uuid, uuid, uuid, integer) is 'Counts the next threads of an account.';
