-- SPDX-License-Identifier: Apache-2.0
-- Copies snapshots of a thread and their writes into its copy, as agent.copy_checkpoints checkpoints. The writes of a
-- snapshot, which are those of the tasks of one step, are copied together.
-- Returns: as agent.copy_checkpoints; write_bytes: what the rows of the writes take, without indexes.
-- Locks:   the caller holds the row of the copy.
create or replace function agent.copy_snapshots(
    p_copy agent.thread_copies,
    p_ns text,
    p_next uuid,
    p_bytes bigint,
    out ids uuid[],
    out parents uuid[],
    out bytes bigint,
    out stored_bytes bigint,
    out write_bytes bigint,
    out copied bigint,
    out is_swept boolean
)
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set enable_hashjoin = off set enable_mergejoin = off set plan_cache_mode = force_generic_plan
as $function$
declare
    -- Headers of rows and their values of fixed length, which agent.compose_measure counts too.
    c_fixed       constant integer := 124;
    c_write_fixed constant integer := 117;
begin
    with recursive up as (
        select 0::bigint as depth, null::uuid as checkpoint_id, p_next as parent_checkpoint_id,
               null::uuid as run_id, null::agent.channel_value[] as channels, null::json as checkpoint,
               null::jsonb as metadata, null::timestamptz as created_at, 0::bigint as stored, 0::bigint as bytes
        union all
        select up.depth + 1, x.checkpoint_id, x.parent_checkpoint_id, x.run_id, x.channels, x.checkpoint,
               x.metadata, x.created_at, c_fixed + s.size,
               up.bytes + 3000 + s.size
               + coalesce((
                   select sum(2000 + 1000 * cardinality(w.digests))
                     from agent.checkpoint_writes w
                    where w.deployment_id = p_copy.deployment_id
                      and w.thread_id = p_copy.source_id
                      and w.checkpoint_ns = p_ns
                      and w.checkpoint_id = x.checkpoint_id
                      and w.run_seq <= p_copy.run_seq), 0)::bigint
          from up
         cross join lateral (
                select k.checkpoint_id, k.parent_checkpoint_id, k.run_id, k.channels, k.checkpoint, k.metadata,
                       k.created_at
                  from agent.checkpoint_snapshots k
                 where k.deployment_id = p_copy.deployment_id
                   and k.thread_id = p_copy.source_id
                   and k.checkpoint_ns = p_ns
                   and k.checkpoint_id = up.parent_checkpoint_id
                 limit 1
               ) x
         cross join lateral (
                select pg_column_size(x.channels)::bigint + pg_column_size(x.checkpoint)
                       + pg_column_size(x.metadata) + pg_column_size(p_ns) as size
               ) s
         where up.bytes < p_bytes
    ),
    copied as (
        insert into agent.checkpoint_snapshots (
            deployment_id, thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, run_id, channels,
            checkpoint, metadata, created_at)
        select p_copy.deployment_id, p_copy.thread_id, p_ns, u.checkpoint_id, u.parent_checkpoint_id, u.run_id,
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
        select p_copy.deployment_id, p_copy.thread_id, p_ns, u.checkpoint_id, w.task_id, w.idx, w.run_seq, w.run_id,
               w.task_path, w.channel, w.digests, w.is_list
          from up u
         cross join lateral (
                select x.task_id, x.idx, x.run_seq, x.run_id, x.task_path, x.channel, x.digests, x.is_list
                  from agent.checkpoint_writes x
                 where x.deployment_id = p_copy.deployment_id
                   and x.thread_id = p_copy.source_id
                   and x.checkpoint_ns = p_ns
                   and x.checkpoint_id = u.checkpoint_id
                   -- Not those of later runs: runs of the copy get the same numbers.
                   and x.run_seq <= p_copy.run_seq
                   and x.deletions >= coalesce((
                        select s.deletions
                          from agent.find_write_sweep(
                                   p_copy.deployment_id, p_copy.source_id, p_ns, u.checkpoint_id) s), 0)
                   and (x.run_id in (
                        select s.run_id
                          from agent.find_swept_runs(p_copy.deployment_id, p_copy.source_id) s)) is not true
                offset 0
               ) w
            on conflict (deployment_id, thread_id, checkpoint_ns, checkpoint_id, task_id, idx, run_seq) do nothing
        returning digests, c_write_fixed + pg_column_size(p_ns) + pg_column_size(task_id) + pg_column_size(task_path)
               + pg_column_size(channel) + pg_column_size(digests) as stored
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
           max(u.bytes), sum(u.stored), (
               select coalesce(sum(w.stored), 0)
                 from writes w), (
               select count(*)
                 from copied), bool_or(u.run_id in (
               select s.run_id
                 from agent.find_swept_runs(p_copy.deployment_id, p_copy.source_id) s))
      into ids, parents, bytes, stored_bytes, write_bytes, copied, is_swept
      from up u;
end
$function$;

comment on function agent.copy_snapshots(agent.thread_copies, text, uuid, bigint) is
    'Copies snapshots of a thread into its copy.';
