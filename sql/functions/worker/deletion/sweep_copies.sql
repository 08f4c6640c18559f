-- SPDX-License-Identifier: Apache-2.0
-- Deletes up to agent.deletion_bytes() of one abandoned copy of a thread. Such a copy was never visible. Its deployment
-- is one of ten, chosen at random, that follow a random place in the index, whose end is followed by its begin: so many
-- copies of one deployment do not keep those of others from their turn. With the last piece its bytes leave the measure
-- of the account.
-- Returns: number of copies examined, 0 or 1: call again while it is 1.
-- Locks:   one row in agent.thread_copies, skipping locked ones; one row of the count of an account with a limit, then
--          the row of its measure.
create or replace function agent.sweep_copies() returns integer
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $function$
declare
    c_nil           constant uuid := '00000000-0000-0000-0000-000000000000';
    v_now           timestamptz := agent.now();
    v_deployment_id uuid;
    v_thread_id     uuid;
    v_copy          agent.thread_copies;
begin
    for v_deployment_id in
        with recursive found as (
            select i.place as deployment_id, i.number as pass, 0 as number
              from unnest(array[gen_random_uuid(), c_nil]) with ordinality i (place, number)
            union all
            select n.deployment_id, f.pass, f.number + 1
              from found f
             cross join lateral (
                    select c.deployment_id
                      from agent.thread_copies c
                     where c.deployment_id > f.deployment_id
                       and c.expires_at <= v_now
                     order by c.deployment_id, c.thread_id
                     limit 1
                   ) n
             where f.number < 10
        )
        select d.deployment_id
          from (
                select f.deployment_id
                  from found f
                 where f.number > 0
                 order by f.pass, f.number
                 limit 10
               ) d
         order by random()
    loop
        select c.thread_id into v_thread_id
          from agent.thread_copies c
         where c.deployment_id = v_deployment_id
           and c.expires_at <= v_now
         order by c.thread_id
         limit 1
           for update skip locked;
        exit when v_thread_id is not null;
    end loop;
    if v_thread_id is null then
        return 0;
    end if;
    if agent.delete_state(v_deployment_id, v_thread_id, agent.deletion_bytes()) > 0 then
        delete from agent.thread_copies c
         where c.deployment_id = v_deployment_id
           and c.thread_id = v_thread_id
        returning c.* into v_copy;
        if exists (select from agent.account_counts) then
            perform agent.change_count(v_deployment_id, 'threads', -1);
        end if;
        perform agent.change_measure(v_deployment_id, -agent.sum_bytes(v_copy.stored_bytes));
    end if;
    return 1;
end
$function$;

comment on function agent.sweep_copies() is 'Deletes copies of threads that were not continued.';
