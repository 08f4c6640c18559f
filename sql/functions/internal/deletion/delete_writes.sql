-- SPDX-License-Identifier: Apache-2.0
-- Deletes the writes of a deleted run, or those of other runs to deleted snapshots that came before the deletion, up to
-- p_bytes: each counts 2,000 bytes, and 1,000 for each digest, whose blob loses a use; a snapshot counts 5,000. A write
-- of many digests may be deleted in part, since nothing reads it.
-- p_run_id: the run; null: the snapshots of agent.write_sweeps.
-- Returns: the unused part of p_bytes; 0 when writes are left for agent.sweep_state.
-- Locks:   the caller holds the thread.
create or replace function agent.delete_writes(p_deployment_id uuid, p_thread_id uuid, p_run_id uuid, p_bytes bigint)
returns bigint
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set enable_hashjoin = off set enable_mergejoin = off set enable_sort = off set plan_cache_mode = force_generic_plan
as $function$
declare
    v_left  bigint := p_bytes;
    v_sweep record;
    v_row   record;
    v_rows  tid[];
    v_cut   integer;
    v_uses  agent.blob_use[] := '{}';
begin
    for v_sweep in
        select null as checkpoint_ns, null::uuid as checkpoint_id, null::bigint as deletions,
               null::tid as row_id, 0 as bytes
         where p_run_id is not null
        union all
        (select s.checkpoint_ns, s.checkpoint_id, s.deletions, s.ctid, 5000
           from agent.write_sweeps s
          where p_run_id is null
            and s.deployment_id = p_deployment_id
            and s.thread_id = p_thread_id
          order by s.deployment_id, s.thread_id, s.checkpoint_ns, s.checkpoint_id)
    loop
        exit when v_left <= 0;
        v_left := v_left - v_sweep.bytes;
        v_rows := '{}';
        for v_row in
            select x.ctid as row_id, x.digests
              from agent.checkpoint_writes x
             where x.run_id = p_run_id
               and uuid_hash_extended(x.thread_id, 0) = uuid_hash_extended(p_thread_id, 0)
               and x.deployment_id is not distinct from p_deployment_id
               and x.thread_id is not distinct from p_thread_id
            union all
            select x.ctid, x.digests
              from agent.checkpoint_writes x
             where x.deployment_id = p_deployment_id
               and x.thread_id = p_thread_id
               and x.checkpoint_ns = v_sweep.checkpoint_ns
               and x.checkpoint_id = v_sweep.checkpoint_id
               and x.deletions < v_sweep.deletions
        loop
            exit when v_left <= 0;
            v_cut := 1 + v_left / 1000;
            if cardinality(v_row.digests) > v_cut then
                v_left := 0;
                v_uses := v_uses || array(
                    select row(p_deployment_id, p_thread_id, u.digest, -1)::agent.blob_use
                      from unnest(v_row.digests[: v_cut]) u (digest));
                update agent.checkpoint_writes w
                   set digests = v_row.digests[v_cut + 1 :]
                 where w.ctid = v_row.row_id;
            else
                v_left := v_left - 2000 - 1000 * cardinality(v_row.digests);
                v_rows := v_rows || v_row.row_id;
            end if;
        end loop;
        with deleted as (
            delete from agent.checkpoint_writes w
             where w.ctid = any (v_rows)
            returning w.digests
        )
        select v_uses || array_agg(row(p_deployment_id, p_thread_id, u.digest, -1)::agent.blob_use) into v_uses
          from deleted d
         cross join lateral unnest(d.digests) u (digest);
        if v_left > 0 then
            delete from agent.write_sweeps s
             where s.ctid = v_sweep.row_id;
        end if;
    end loop;
    if cardinality(v_uses) > 0 then
        perform agent.save_blobs('{}', v_uses);
    end if;
    return greatest(v_left, 0);
end
$function$;

comment on function agent.delete_writes(uuid, uuid, uuid, bigint) is 'Deletes writes of deleted runs and snapshots.';
