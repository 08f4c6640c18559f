-- SPDX-License-Identifier: Apache-2.0
-- The last snapshot of a namespace. In the root graph a lost attempt of a run may have put snapshots after the
-- checkpoint from which the next attempt continues; these are skipped. For the root graph the result is, in this order,
-- 1. the newest snapshot, if it is that of the thread's head or the current attempt put it;
-- 2. else the snapshot of the thread's head;
-- 3. else, for a graph without checkpoints in the API, the newest snapshot that no earlier attempt put.
-- Returns: its id; null for none.
-- Locks:   none.
create or replace function agent.find_last_snapshot(
    p_deployment_id uuid,
    p_thread_id uuid,
    p_checkpoint_ns text
) returns uuid
language plpgsql stable security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set enable_hashjoin = off set enable_mergejoin = off set plan_cache_mode = force_generic_plan
as $function$
declare
    v_last   record;
    v_head   uuid;
    v_active record;
begin
    select x.checkpoint_id, x.run_id, x.epoch into v_last
      from agent.checkpoint_snapshots x
     where x.deployment_id = p_deployment_id
       and x.thread_id = p_thread_id
       and x.checkpoint_ns = p_checkpoint_ns
       and (x.run_id in (
            select s.run_id
              from agent.find_swept_runs(p_deployment_id, p_thread_id) s)) is not true
     order by x.deployment_id desc, x.thread_id desc, x.checkpoint_ns desc, x.checkpoint_id desc
     limit 1;
    if p_checkpoint_ns <> '' or v_last.checkpoint_id is null then
        return v_last.checkpoint_id;
    end if;
    select t.head_checkpoint_id, q.run_id, q.epoch into v_active
      from agent.threads t
      left join lateral (
            select x.run_id, x.epoch
              from agent.run_queue x
             where x.run_id = t.active_run_id
               and x.deployment_id is not distinct from t.deployment_id
             limit 1
           ) q on true
     where t.deployment_id = p_deployment_id
       and t.thread_id = p_thread_id;
    if v_last.checkpoint_id = v_active.head_checkpoint_id
        or (v_last.run_id = v_active.run_id and v_last.epoch = v_active.epoch)
    then
        return v_last.checkpoint_id;
    end if;
    select x.checkpoint_id into v_head
      from agent.checkpoint_snapshots x
     where x.deployment_id = p_deployment_id
       and x.thread_id = p_thread_id
       and x.checkpoint_ns = ''
       and x.checkpoint_id = v_active.head_checkpoint_id;
    return coalesce(v_head, (
        select x.checkpoint_id
          from agent.checkpoint_snapshots x
         where x.deployment_id = p_deployment_id
           and x.thread_id = p_thread_id
           and x.checkpoint_ns = ''
           and (x.run_id = v_active.run_id and x.epoch <> v_active.epoch) is not true
           and (x.run_id in (
                select s.run_id
                  from agent.find_swept_runs(p_deployment_id, p_thread_id) s)) is not true
         order by x.deployment_id desc, x.thread_id desc, x.checkpoint_ns desc, x.checkpoint_id desc
         limit 1));
end
$function$;

comment on function agent.find_last_snapshot(uuid, uuid, text) is 'The last snapshot of a namespace.';
