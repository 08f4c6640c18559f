-- SPDX-License-Identifier: Apache-2.0
-- Deletes up to agent.deletion_bytes() of one abandoned copy of a thread, chosen at random from ten. Such a copy was
-- never visible. With the last piece its bytes leave the measure of the account.
-- Returns: number of copies examined, 0 or 1: call again while it is 1.
-- Locks:   ten rows in agent.thread_copies, skipping locked ones; one row of the count of an account with a limit, then
--          the row of its measure.
create or replace function agent.sweep_copies() returns integer
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $function$
declare
    v_deployment_id uuid;
    v_thread_id     uuid;
    v_copy          agent.thread_copies;
begin
    select d.deployment_id, d.thread_id into v_deployment_id, v_thread_id
      from (
            select c.deployment_id, c.thread_id
              from agent.thread_copies c
             where c.expires_at <= agent.now()
             order by c.deployment_id, c.thread_id
             limit 10
               for update skip locked
           ) d
     order by random()
     limit 1;
    if not found then
        return 0;
    end if;
    if agent.delete_state(v_deployment_id, v_thread_id, agent.deletion_bytes()) > 0 then
        delete from agent.thread_copies c
         where c.deployment_id = v_deployment_id
           and c.thread_id = v_thread_id
        returning c.* into v_copy;
        -- A copy that its request has begun again does not count (agent.release_copy).
        if v_copy.expires_at > '-infinity' and exists (select from agent.account_counts) then
            perform agent.change_count(v_deployment_id, 'threads', -1);
        end if;
        perform agent.change_measure(v_deployment_id, -agent.sum_bytes(v_copy.stored_bytes));
    end if;
    return 1;
end
$function$;

comment on function agent.sweep_copies() is 'Deletes copies of threads that were not continued.';
