-- SPDX-License-Identifier: Apache-2.0
-- Deletes the writes of a run, and those of all runs to snapshots that are being deleted.
-- p_namespaces, p_ids: the snapshots; null for none.
-- Returns: nothing.
-- Locks:   the caller holds the thread.
create or replace function agent.delete_writes(
    p_deployment_id uuid,
    p_thread_id uuid,
    p_run_id uuid,
    p_namespaces text[],
    p_ids uuid[]
) returns void
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set enable_hashjoin = off set enable_mergejoin = off set plan_cache_mode = force_generic_plan
as $function$
declare
    v_uses agent.blob_use[];
begin
    with deleted as (
        delete from agent.checkpoint_writes w
         where w.ctid = any (array(
                select x.ctid
                  from agent.checkpoint_writes x
                 where x.run_id = p_run_id
                   and uuid_hash_extended(x.thread_id, 0) = uuid_hash_extended(p_thread_id, 0)
                   and x.deployment_id is not distinct from p_deployment_id
                   and x.thread_id is not distinct from p_thread_id)
            || array(
                select x.row_id
                  from unnest(p_namespaces, p_ids) i (checkpoint_ns, checkpoint_id)
                 cross join lateral (
                        select y.ctid as row_id
                          from agent.checkpoint_writes y
                         where y.deployment_id = p_deployment_id
                           and y.thread_id = p_thread_id
                           and y.checkpoint_ns = i.checkpoint_ns
                           and y.checkpoint_id = i.checkpoint_id
                        offset 0
                       ) x))
        returning w.digests
    )
    select array_agg(row(p_deployment_id, p_thread_id, u.digest, -1)::agent.blob_use) into v_uses
      from deleted d
     cross join lateral unnest(d.digests) u (digest);
    if v_uses is not null then
        perform agent.save_blobs('{}', v_uses);
    end if;
end
$function$;

comment on function agent.delete_writes(uuid, uuid, uuid, text[], uuid[]) is
    'Deletes the writes of a run, and those to some snapshots.';
