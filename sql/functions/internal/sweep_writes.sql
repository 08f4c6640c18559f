-- SPDX-License-Identifier: Apache-2.0
-- Deletes up to agent.deletion_bytes() of the writes of deleted runs and snapshots of one thread, chosen at random from
-- ten; when there are none, blobs without uses (agent.sweep_blobs).
-- Returns: number of threads examined, 0 or 1: call again while it is 1.
-- Locks:   the threads of ten rows of agent.write_sweeps, skipping locked ones.
create or replace function agent.sweep_writes() returns integer
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $function$
declare
    v_deployment_id uuid;
    v_thread_id     uuid;
begin
    select d.deployment_id, d.thread_id into v_deployment_id, v_thread_id
      from (
            select w.deployment_id, w.thread_id
              from agent.write_sweeps w
             cross join lateral (
                    select from agent.threads x
                     where x.deployment_id = w.deployment_id
                       and x.thread_id = w.thread_id
                       for no key update skip locked
                   ) t
             order by w.deployment_id, w.thread_id, w.is_snapshot, w.checkpoint_ns, w.deleted_id
             limit 10
           ) d
     order by random()
     limit 1;
    if not found then
        return agent.sweep_blobs();
    end if;
    perform agent.delete_writes(v_deployment_id, v_thread_id, agent.deletion_bytes());
    return 1;
end
$function$;

comment on function agent.sweep_writes() is 'Deletes writes of deleted runs and snapshots.';
