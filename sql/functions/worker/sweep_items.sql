-- SPDX-License-Identifier: Apache-2.0
-- Deletes up to agent.deletion_bytes() of the elements of one list that no checkpoint contains, chosen at
-- random from ten; when there are none, writes of deleted runs (agent.sweep_writes) or
-- blobs without uses (agent.sweep_blobs).
-- Returns: number of lists or threads examined, 0 or 1: call again while it is 1.
-- Locks:   ten rows in agent.item_sweeps, and the threads of lists of snapshots, skipping locked ones.
create or replace function agent.sweep_items() returns integer
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $function$
declare
    v_row agent.item_sweeps;
begin
    select d.* into v_row
      from (
            select w.*
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
             order by w.deployment_id, w.thread_id, w.list_id
             limit 10
               for update of w skip locked
           ) d
     order by random()
     limit 1;
    if not found then
        return agent.sweep_writes();
    end if;
    perform agent.delete_items(
        v_row.deployment_id, v_row.thread_id, agent.deletion_bytes(), v_row.list_id);
    return 1;
end
$function$;

comment on function agent.sweep_items() is 'Deletes elements that no checkpoint contains, and blobs without uses.';
