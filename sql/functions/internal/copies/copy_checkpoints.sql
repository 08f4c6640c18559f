-- SPDX-License-Identifier: Apache-2.0
-- Copies checkpoints of one namespace of a thread into its copy, from p_next towards the first one, for
-- agent.copy_history. Up to p_bytes: each row counts as its stored size plus 1,000 bytes for each index of its table.
-- Returns: ids, parents: a null, then the checkpoints that were found, and their parents; bytes: their size;
--          stored_bytes: what their rows take, without indexes; copied: the number of rows inserted; is_swept: one of
--          them is to be swept, since its run was deleted.
-- Locks:   the caller holds the row of the copy.
create or replace function agent.copy_checkpoints(
    p_copy agent.thread_copies,
    p_ns text,
    p_next uuid,
    p_bytes bigint,
    out ids uuid[],
    out parents uuid[],
    out bytes bigint,
    out stored_bytes bigint,
    out copied bigint,
    out is_swept boolean
)
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set enable_hashjoin = off set enable_mergejoin = off set plan_cache_mode = force_generic_plan
as $function$
declare
    -- The header of a row and its values of fixed length, which agent.compose_measure counts too.
    c_fixed constant integer := 128;
begin
    with recursive up as (
        select 0::bigint as depth, null::uuid as checkpoint_id, p_next as parent_checkpoint_id,
               null::uuid as run_id, null::agent.channel_value[] as channels, null::json as next,
               null::json as tasks, null::json as metadata, null::text as format, null::bigint as state_bytes,
               null::timestamptz as created_at, null::text as update, null::timestamptz as updated_at,
               0::bigint as stored, 0::bigint as bytes
        union all
        select up.depth + 1, x.checkpoint_id, x.parent_checkpoint_id, x.run_id, x.channels, x.next, x.tasks,
               x.metadata, x.format, x.state_bytes, x.created_at, o.task, o.saved_at, c_fixed + s.size,
               up.bytes + 3000 + s.size
               + case
                   when x.run_id is distinct from up.run_id
                   then 1000 + coalesce((
                       select pg_column_size(r.config)
                         from agent.runs r
                        where r.run_id = x.run_id
                          and r.deployment_id is not distinct from p_copy.deployment_id), 0)
                   else 0
               end
          from up
         cross join lateral (
                select k.checkpoint_id, k.parent_checkpoint_id, k.run_id, k.channels, k.next, k.format, k.state_bytes,
                       k.created_at,
                       -- The rows of the copy have neither the input of a run nor which of several runs that executed
                       -- the same tasks led to the checkpoint.
                       case
                           when k.metadata ->> 'source' = 'input' or agent.was_repeated(
                               k.deployment_id, k.thread_id, k.parent_checkpoint_id)
                           then agent.add_writes(
                               k.deployment_id, k.thread_id, k.checkpoint_ns, k.parent_checkpoint_id, k.run_id,
                               k.created_at, k.metadata)
                           else k.metadata
                       end as metadata,
                       -- With the reports of runs, which are of the source, up to the beginning of the copy.
                       agent.render_tasks(
                           k.deployment_id, k.thread_id, k.checkpoint_ns, k.checkpoint_id, k.tasks,
                           p_copy.started_at) as tasks
                  from agent.checkpoints k
                 where k.deployment_id = p_copy.deployment_id
                   and k.thread_id = p_copy.source_id
                   and k.checkpoint_ns = p_ns
                   and k.checkpoint_id = up.parent_checkpoint_id
                 limit 1
               ) x
          left join lateral agent.find_task_report(
                    p_copy.deployment_id, p_copy.source_id, p_ns, x.checkpoint_id, agent.update_id(),
                    p_copy.started_at) o on true
         cross join lateral (
                select pg_column_size(x.channels)::bigint + pg_column_size(x.next) + pg_column_size(x.tasks)
                       + pg_column_size(x.metadata) + pg_column_size(p_ns) + coalesce(pg_column_size(o.task), 0) as size
               ) s
         where up.bytes < p_bytes
    ),
    copied as (
        insert into agent.checkpoints (
            deployment_id, thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, run_id, channels, next,
            tasks, metadata, format, state_bytes, created_at)
        select p_copy.deployment_id, p_copy.thread_id, p_ns, u.checkpoint_id, u.parent_checkpoint_id, u.run_id,
               u.channels, u.next, u.tasks, u.metadata, u.format, u.state_bytes, u.created_at
          from up u
         where u.depth > 0
            on conflict (deployment_id, thread_id, checkpoint_ns, checkpoint_id) do nothing
        returning checkpoint_id
    ),
    -- Those of the source are deleted with the runs that sent them.
    updates as (
        insert into agent.checkpoint_tasks (
            deployment_id, thread_id, checkpoint_id, task_id, run_id, checkpoint_ns, task, saved_at)
        select p_copy.deployment_id, p_copy.thread_id, u.checkpoint_id, agent.update_id(), p_copy.thread_id, p_ns,
               u.update, u.updated_at
          from up u
         where u.update is not null
            on conflict (deployment_id, thread_id, checkpoint_id, task_id, run_id) do nothing
    ),
    runs as (
        insert into agent.copied_runs (deployment_id, thread_id, run_id, metadata)
        select p_copy.deployment_id, p_copy.thread_id, r.run_id, o.metadata
          from (
                select distinct u.run_id
                  from up u
                 where u.run_id is not null
               ) r
         cross join lateral agent.find_run_metadata(p_copy.deployment_id, p_copy.source_id, r.run_id) o
            on conflict (deployment_id, thread_id, run_id) do nothing
    )
    select array_agg(u.checkpoint_id order by u.depth), array_agg(u.parent_checkpoint_id order by u.depth),
           max(u.bytes), sum(u.stored), (
               select count(*)
                 from copied), bool_or(u.run_id in (
               select s.run_id
                 from agent.find_swept_runs(p_copy.deployment_id, p_copy.source_id) s))
      into ids, parents, bytes, stored_bytes, copied, is_swept
      from up u;
end
$function$;

comment on function agent.copy_checkpoints(agent.thread_copies, text, uuid, bigint) is
    'Copies checkpoints of a thread into its copy.';
