-- SPDX-License-Identifier: Apache-2.0
-- Deletes up to agent.deletion_bytes() of the elements that no checkpoint contains, of the list that has waited
-- longest, which afterwards waits after all others.
-- Returns: number of lists examined, 0 or 1: call again while it is 1.
-- Locks:   a row of agent.item_sweeps, for a list of snapshots also the thread, skipping locked ones.
create or replace function agent.sweep_items() returns integer
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set enable_hashjoin = off set enable_mergejoin = off set plan_cache_mode = force_generic_plan
as $function$
declare
    v_now  timestamptz := agent.now();
    v_list agent.item_sweeps;
begin
    select w.* into v_list
      from agent.item_sweeps w
      left join lateral (
            select x.thread_id
              from agent.threads x
             where w.is_snapshot
               and x.deployment_id = w.deployment_id
               and x.thread_id = w.thread_id
               for no key update skip locked
           ) t on true
     where not w.is_snapshot
        or t.thread_id is not null
     order by w.due_at
     limit 1
       for update of w skip locked;
    if not found then
        return 0;
    end if;
    perform agent.delete_items(v_list.deployment_id, v_list.thread_id, agent.deletion_bytes(), v_list.list_id);
    update agent.item_sweeps w
       set due_at = v_now
     where w.deployment_id = v_list.deployment_id
       and w.thread_id = v_list.thread_id
       and w.list_id = v_list.list_id;
    return 1;
end
$function$;

comment on function agent.sweep_items() is 'Deletes elements of a list that no checkpoint contains.';
