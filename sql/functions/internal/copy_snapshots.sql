-- SPDX-License-Identifier: Apache-2.0
-- Copies the snapshots of a thread and their writes into its copy, as agent.copy_checkpoints the checkpoints. The
-- writes of a snapshot, which are those of the tasks of one step, are copied together.
-- Returns: the unused part of p_bytes; 0 or less when something may be left; null when one is left of a deleted run.
-- Locks:   the caller holds the row of the copy.
create or replace function agent.copy_snapshots(p_copy agent.thread_copies, p_bytes bigint) returns bigint
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set enable_hashjoin = off set enable_mergejoin = off set plan_cache_mode = force_generic_plan
as $function$
declare
    v_left     bigint := p_bytes;
    v_ns       text := p_copy.snapshot_ns;
    v_next     uuid := p_copy.next_snapshot_id;
    v_ids      uuid[];
    v_parents  uuid[];
    v_found    integer;
    v_copied   bigint;
    v_bytes    bigint;
    v_is_swept boolean;
begin
    while v_ns is not null and v_left > 0
    loop
        with recursive up as (
            select 0::bigint as depth, null::uuid as checkpoint_id, v_next as parent_checkpoint_id,
                   null::uuid as run_id, null::agent.channel_value[] as channels, null::json as checkpoint,
                   null::jsonb as metadata, null::timestamptz as created_at, 0::bigint as bytes
            union all
            select up.depth + 1, x.checkpoint_id, x.parent_checkpoint_id, x.run_id, x.channels, x.checkpoint,
                   x.metadata, x.created_at,
                   up.bytes + 3000 + pg_column_size(x.channels) + pg_column_size(x.checkpoint)
                   + pg_column_size(x.metadata)
                   + coalesce((
                       select sum(2000 + 1000 * cardinality(w.digests))
                         from agent.checkpoint_writes w
                        where w.deployment_id = p_copy.deployment_id
                          and w.thread_id = p_copy.source_id
                          and w.checkpoint_ns = v_ns
                          and w.checkpoint_id = x.checkpoint_id
                          and w.run_seq <= p_copy.run_seq), 0)::bigint
              from up
             cross join lateral (
                    select k.checkpoint_id, k.parent_checkpoint_id, k.run_id, k.channels, k.checkpoint, k.metadata,
                           k.created_at
                      from agent.checkpoint_snapshots k
                     where k.deployment_id = p_copy.deployment_id
                       and k.thread_id = p_copy.source_id
                       and k.checkpoint_ns = v_ns
                       and k.checkpoint_id = up.parent_checkpoint_id
                     limit 1
                   ) x
             where up.bytes < v_left
        ),
        copied as (
            insert into agent.checkpoint_snapshots (
                deployment_id, thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, run_id, channels,
                checkpoint, metadata, created_at)
            select p_copy.deployment_id, p_copy.thread_id, v_ns, u.checkpoint_id, u.parent_checkpoint_id, u.run_id,
                   u.channels, u.checkpoint, u.metadata, u.created_at
              from up u
             where u.depth > 0
                on conflict (deployment_id, thread_id, checkpoint_ns, checkpoint_id) do nothing
            returning checkpoint_id
        ),
        writes as (
            insert into agent.checkpoint_writes (
                deployment_id, thread_id, checkpoint_ns, checkpoint_id, task_id, idx, run_seq, run_id, task_path,
                channel, digests, is_list)
            select p_copy.deployment_id, p_copy.thread_id, v_ns, u.checkpoint_id, w.task_id, w.idx, w.run_seq, w.run_id,
                   w.task_path, w.channel, w.digests, w.is_list
              from up u
             cross join lateral (
                    select x.task_id, x.idx, x.run_seq, x.run_id, x.task_path, x.channel, x.digests, x.is_list
                      from agent.checkpoint_writes x
                     where x.deployment_id = p_copy.deployment_id
                       and x.thread_id = p_copy.source_id
                       and x.checkpoint_ns = v_ns
                       and x.checkpoint_id = u.checkpoint_id
                       -- Not those of later runs: runs of the copy get the same numbers.
                       and x.run_seq <= p_copy.run_seq
                       and x.deletions >= coalesce((
                            select s.deletions
                              from agent.find_write_sweep(
                                       p_copy.deployment_id, p_copy.source_id, v_ns, u.checkpoint_id) s), 0)
                       and (x.run_id in (
                            select s.run_id
                              from agent.find_swept_runs(p_copy.deployment_id, p_copy.source_id) s)) is not true
                    offset 0
                   ) w
                on conflict (deployment_id, thread_id, checkpoint_ns, checkpoint_id, task_id, idx, run_seq) do nothing
            returning digests
        ),
        blobs as (
            insert into agent.copy_blobs as q (deployment_id, thread_id, digest, uses)
            select p_copy.deployment_id, p_copy.thread_id, d.digest, count(*)
              from writes w
             cross join lateral unnest(w.digests) d (digest)
             group by d.digest
                on conflict (deployment_id, thread_id, digest) do update
               set uses = q.uses + excluded.uses
        )
        select array_agg(u.checkpoint_id order by u.depth), array_agg(u.parent_checkpoint_id order by u.depth),
               max(u.bytes), (
                   select count(*)
                     from copied), bool_or(u.run_id in (
                   select s.run_id
                     from agent.find_swept_runs(p_copy.deployment_id, p_copy.source_id) s))
          into v_ids, v_parents, v_bytes, v_copied, v_is_swept
          from up u;
        if v_is_swept then
            return null;
        end if;
        v_found := cardinality(v_ids) - 1;
        v_next := v_parents[v_found + 1];
        perform agent.copy_ranges(p_copy, true, v_ns, v_ids[2 :], v_parents[2 :]);

        v_left := v_left - v_bytes;
        -- A runner may have sent a checkpoint that is its own ancestor.
        continue when v_next is not null and v_found > 0 and v_copied = v_found;

        v_left := v_left - 50000;
        select x.checkpoint_ns into v_ns
          from agent.checkpoint_snapshots x
         where x.deployment_id = p_copy.deployment_id
           and x.thread_id = p_copy.source_id
           and x.checkpoint_ns > v_ns
         order by x.deployment_id, x.thread_id, x.checkpoint_ns, x.checkpoint_id
         limit 1;
        -- Those that were saved later do not belong to the head that is copied.
        select x.checkpoint_id into v_next
          from agent.checkpoint_snapshots x
         where x.deployment_id = p_copy.deployment_id
           and x.thread_id = p_copy.source_id
           and x.checkpoint_ns = v_ns
           and x.created_at <= p_copy.started_at
           and (x.run_id in (
                select s.run_id
                  from agent.find_swept_runs(p_copy.deployment_id, p_copy.source_id) s)) is not true
         order by x.deployment_id desc, x.thread_id desc, x.checkpoint_ns desc, x.checkpoint_id desc
         limit 1;
    end loop;
    update agent.thread_copies c
       set snapshot_ns = v_ns,
           next_snapshot_id = v_next
     where c.deployment_id = p_copy.deployment_id
       and c.thread_id = p_copy.thread_id;
    return case when v_ns is null then v_left else least(v_left, 0) end;
end
$function$;

comment on function agent.copy_snapshots(agent.thread_copies, bigint) is
    'Copies the snapshots of a thread into its copy.';
