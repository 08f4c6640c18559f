-- SPDX-License-Identifier: Apache-2.0
-- Deletes up to agent.deletion_bytes() of what deletions have left of one thread, chosen at random from ten:
-- 1. writes, snapshots and checkpoints of a deleted run;
-- 2. when there are none, writes of other runs to deleted snapshots;
-- 3. then elements of a list that no checkpoint contains;
-- 4. then blobs without uses (agent.sweep_blobs).
-- Returns: number of runs, threads or lists examined, 0 or 1: call again while it is 1.
-- Locks:   the thread, unless it is a list of checkpoints, of which it locks ten rows in agent.item_sweeps. Locked ones
--          are passed over.
create or replace function agent.sweep_state() returns integer
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set enable_hashjoin = off set enable_mergejoin = off set plan_cache_mode = force_generic_plan
as $function$
declare
    v_row  record;
    v_list agent.item_sweeps;
begin
    select d.* into v_row
      from (
            select c.*
              from (
                    select s.*
                      from agent.run_sweeps s
                     order by s.deployment_id, s.thread_id, s.run_id
                     limit 10
                   ) c
             order by random()
            offset 0
           ) d
     cross join lateral (
            select from agent.threads x
             where x.deployment_id = d.deployment_id
               and x.thread_id = d.thread_id
               for no key update skip locked
           ) t
     limit 1;
    if found then
        perform agent.delete_run_state(
            v_row.deployment_id, v_row.thread_id, coalesce((
                select s.run_id
                  from agent.run_sweeps s
                 where s.deployment_id = v_row.deployment_id
                   and s.thread_id = v_row.thread_id
                   and s.is_divided), v_row.run_id), agent.deletion_bytes());
        return 1;
    end if;
    select d.* into v_row
      from (
            select c.*
              from (
                    select s.deployment_id, s.thread_id
                      from agent.write_sweeps s
                     order by s.deployment_id, s.thread_id, s.checkpoint_ns, s.checkpoint_id
                     limit 10
                   ) c
             order by random()
            offset 0
           ) d
     cross join lateral (
            select from agent.threads x
             where x.deployment_id = d.deployment_id
               and x.thread_id = d.thread_id
               for no key update skip locked
           ) t
     limit 1;
    if found then
        perform agent.delete_writes(v_row.deployment_id, v_row.thread_id, null, agent.deletion_bytes());
        return 1;
    end if;
    select d.* into v_list
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
    if found then
        perform agent.delete_items(
            v_list.deployment_id, v_list.thread_id, agent.deletion_bytes(), v_list.list_id);
        return 1;
    end if;
    return agent.sweep_blobs();
end
$function$;

comment on function agent.sweep_state() is 'Deletes what deletions of runs have left.';
