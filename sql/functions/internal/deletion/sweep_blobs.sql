-- SPDX-License-Identifier: Apache-2.0
-- Deletes up to agent.deletion_bytes() of the blobs without uses of the thread that is due longest, which afterwards
-- waits after all others that are due: each row counts as its stored size plus 3,000 bytes, for itself and two indexes.
-- A thread with an unfinished run is postponed: the run may still use them.
-- Returns: number of threads examined, 0 or 1: call again while it is 1.
-- Locks:   a row of agent.blob_sweeps and its thread, skipping locked ones.
create or replace function agent.sweep_blobs() returns integer
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $function$
declare
    v_now    timestamptz := agent.now();
    v_left   bigint := agent.deletion_bytes();
    v_row    record;
    v_blob   record;
    v_rows   tid[] := '{}';
begin
    select w.deployment_id, w.thread_id, t.status into v_row
      from agent.blob_sweeps w
     cross join lateral (
            select x.status
              from agent.threads x
             where x.deployment_id = w.deployment_id
               and x.thread_id = w.thread_id
               for no key update skip locked
           ) t
     where w.due_at <= v_now
     order by w.due_at
     limit 1
       for update of w skip locked;
    if not found then
        return 0;
    elsif v_row.status = 'busy' then
        update agent.blob_sweeps w
           set due_at = v_now + agent.sweep_delay()
         where w.deployment_id = v_row.deployment_id
           and w.thread_id = v_row.thread_id;
        return 1;
    end if;
    for v_blob in
        select p.row_id, 3000 + p.bytes as bytes
          from agent.checkpoint_blobs b
         cross join lateral (
                select x.ctid as row_id, pg_column_size(x.content) as bytes
                  from agent.checkpoint_blobs x
                 where x.deployment_id = b.deployment_id
                   and x.thread_id = b.thread_id
                   and x.digest = b.digest
                 order by x.part desc
               ) p
         where b.deployment_id = v_row.deployment_id
           and b.thread_id = v_row.thread_id
           and b.uses = 0
    loop
        v_rows := v_rows || v_blob.row_id;
        v_left := v_left - v_blob.bytes;
        exit when v_left <= 0;
    end loop;
    delete from agent.checkpoint_blobs b
     where b.ctid = any (v_rows);
    if v_left > 0 then
        delete from agent.blob_sweeps w
         where w.deployment_id = v_row.deployment_id
           and w.thread_id = v_row.thread_id;
    else
        update agent.blob_sweeps w
           set due_at = v_now
         where w.deployment_id = v_row.deployment_id
           and w.thread_id = v_row.thread_id;
    end if;
    return 1;
end
$function$;

comment on function agent.sweep_blobs() is 'Deletes blobs without uses.';
