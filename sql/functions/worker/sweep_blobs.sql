-- SPDX-License-Identifier: Apache-2.0
-- Deletes unreferenced values of one thread, chosen at random from the ten that are due the longest, so that
-- one which cannot be swept does not block the others. A thread with more than 2 million references from
-- checkpoints to values, some two seconds of work under its lock, is postponed by a day: its unreferenced
-- values are deleted with the thread.
-- Returns: number of threads examined, 0 or 1: call again while it is 1.
-- Locks:   the thread, skipping it when locked, and its row in agent.blob_sweeps.
create or replace function agent.sweep_blobs() returns integer
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $function$
declare
    c_references constant bigint := 2000000;
    v_now     timestamptz := agent.now();
    v_row     agent.blob_sweeps;
    v_count   bigint := 0;
    v_added   bigint;
    v_orphans uuid[];
begin
    select d.* into v_row
      from (
            select b.*
              from agent.blob_sweeps b
             where b.due_at <= v_now
             order by b.due_at
             limit 10
           ) d
     order by random()
     limit 1;
    if not found then
        return 0;
    end if;

    perform from agent.threads t
      where t.deployment_id = v_row.deployment_id
        and t.thread_id = v_row.thread_id
        for no key update skip locked;
    if not found then
        update agent.blob_sweeps b
           set due_at = v_now + interval '10 seconds'
         where b.deployment_id = v_row.deployment_id
           and b.thread_id = v_row.thread_id;
        return 1;
    end if;

    -- Counted up to the limit, checkpoint by checkpoint: lists compress, so their stored length does not count.
    for v_added in
        select (select sum(cardinality(v.digests)) from unnest(c.channels) v)
          from agent.checkpoints c
         where c.deployment_id = v_row.deployment_id
           and c.thread_id = v_row.thread_id
    loop
        v_count := v_count + coalesce(v_added, 0);
        exit when v_count > c_references;
    end loop;
    if v_count > c_references then
        update agent.blob_sweeps b
           set due_at = v_now + interval '1 day'
         where b.deployment_id = v_row.deployment_id
           and b.thread_id = v_row.thread_id;
        return 1;
    end if;

    -- EXCEPT hashes or sorts in every plan; NOT IN compares each value with each reference when the planner
    -- expects more than work_mem can hold.
    select array_agg(o.digest) into v_orphans
      from (
            select b.digest
              from agent.checkpoint_blobs b
             where b.deployment_id = v_row.deployment_id
               and b.thread_id = v_row.thread_id
            except
            select d.digest
              from agent.checkpoints c
             cross join lateral unnest(c.channels) v
             cross join lateral unnest(v.digests) d (digest)
             where c.deployment_id = v_row.deployment_id
               and c.thread_id = v_row.thread_id
           ) o;
    delete from agent.checkpoint_blobs b
     where b.deployment_id = v_row.deployment_id
       and b.thread_id = v_row.thread_id
       and b.digest = any (v_orphans);
    delete from agent.blob_sweeps b
     where b.deployment_id = v_row.deployment_id
       and b.thread_id = v_row.thread_id;
    return 1;
end
$function$;

comment on function agent.sweep_blobs() is 'Deletes values that no checkpoint refers to.';
