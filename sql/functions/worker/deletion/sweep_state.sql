-- SPDX-License-Identifier: Apache-2.0
-- Deletes up to agent.deletion_bytes() of the rows that earlier deletions have left in one thread, in four stages:
-- 1. writes, snapshots, checkpoints and reports about tasks of a deleted run;
-- 2. writes of other runs to deleted snapshots;
-- 3. elements of a list that no checkpoint contains (agent.sweep_items);
-- 4. blobs without uses (agent.sweep_blobs).
-- A call executes the stage whose first row has waited longest, for that row, which afterwards waits after all others:
-- so no thread, however much is added to it, keeps another one from its turn. If the row is locked the next one of the
-- stage is taken; if all are locked (in the first two stages the first ten), the next stage.
-- Returns: number of runs, threads or lists examined, 0 or 1: call again while it is 1.
-- Locks:   the thread; for a list of checkpoints only its row of agent.item_sweeps. Locked ones are skipped.
create or replace function agent.sweep_state() returns integer
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set enable_hashjoin = off set enable_mergejoin = off set plan_cache_mode = force_generic_plan
as $function$
declare
    v_now   timestamptz := agent.now();
    v_stage text;
    v_row   record;
begin
    for v_stage in
        select s.stage
          from (
                (select 'run', r.due_at from agent.run_sweeps r order by r.due_at limit 1)
                union all
                (select 'write', w.due_at from agent.write_sweeps w order by w.due_at limit 1)
                union all
                (select 'item', i.due_at from agent.item_sweeps i order by i.due_at limit 1)
                union all
                (select 'blob', b.due_at from agent.blob_sweeps b order by b.due_at limit 1)
               ) s (stage, due_at)
         order by s.due_at
    loop
        if v_stage in ('run', 'write') then
            select d.* into v_row
              from (
                    select c.*
                      from (
                            (select s.deployment_id, s.thread_id, s.run_id, null as checkpoint_ns,
                                    null::uuid as checkpoint_id, s.due_at
                               from agent.run_sweeps s
                              where v_stage = 'run'
                              order by s.due_at
                              limit 10)
                            union all
                            (select s.deployment_id, s.thread_id, null, s.checkpoint_ns, s.checkpoint_id, s.due_at
                               from agent.write_sweeps s
                              where v_stage = 'write'
                              order by s.due_at
                              limit 10)
                           ) c
                     order by c.due_at
                    offset 0
                   ) d
             cross join lateral (
                    select from agent.threads x
                     where x.deployment_id = d.deployment_id
                       and x.thread_id = d.thread_id
                       for no key update skip locked
                   ) t
             limit 1;
            continue when not found;
            if v_stage = 'run' then
                perform agent.delete_run_state(
                    v_row.deployment_id, v_row.thread_id, coalesce((
                        select s.run_id
                          from agent.run_sweeps s
                         where s.deployment_id = v_row.deployment_id
                           and s.thread_id = v_row.thread_id
                           and s.is_attaching), v_row.run_id), agent.deletion_bytes());
                update agent.run_sweeps s
                   set due_at = v_now
                 where s.deployment_id = v_row.deployment_id
                   and s.thread_id = v_row.thread_id
                   and s.run_id = v_row.run_id;
            else
                perform agent.delete_writes(v_row.deployment_id, v_row.thread_id, null, agent.deletion_bytes());
                update agent.write_sweeps s
                   set due_at = v_now
                 where s.deployment_id = v_row.deployment_id
                   and s.thread_id = v_row.thread_id
                   and s.checkpoint_ns = v_row.checkpoint_ns
                   and s.checkpoint_id = v_row.checkpoint_id;
            end if;
            return 1;
        elsif v_stage = 'item' and agent.sweep_items() > 0 or v_stage = 'blob' and agent.sweep_blobs() > 0 then
            return 1;
        end if;
    end loop;
    return 0;
end
$function$;

comment on function agent.sweep_state() is 'Deletes what deletions of runs have left.';
