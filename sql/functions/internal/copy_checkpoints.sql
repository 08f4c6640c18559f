-- SPDX-License-Identifier: Apache-2.0
-- Copies the checkpoints of a thread into its copy, namespace by namespace, each from the newest one towards the first
-- one, and notes for agent.copy_items the elements that they contain (agent.copy_ranges). Up to
-- p_bytes: each row counts as its stored size plus 1,000 bytes, and as much for each further index of its table; a
-- namespace counts 50,000 bytes more.
-- Returns: the unused part of p_bytes; 0 or less when something may be left; null when one is left of a deleted run.
-- Locks:   the caller holds the row of the copy.
create or replace function agent.copy_checkpoints(p_copy agent.thread_copies, p_bytes bigint) returns bigint
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set enable_hashjoin = off set enable_mergejoin = off set plan_cache_mode = force_generic_plan
as $function$
declare
    v_left     bigint := p_bytes;
    v_ns       text := p_copy.checkpoint_ns;
    v_next     uuid := p_copy.next_checkpoint_id;
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
                   null::uuid as run_id, null::agent.channel_value[] as channels, null::json as next,
                   null::json as tasks, null::json as metadata, null::json as opaque, null::bigint as state_bytes,
                   null::timestamptz as created_at, 0::bigint as bytes
            union all
            select up.depth + 1, x.checkpoint_id, x.parent_checkpoint_id, x.run_id, x.channels, x.next, x.tasks,
                   x.metadata, x.opaque, x.state_bytes, x.created_at,
                   up.bytes + 3000 + pg_column_size(x.channels) + pg_column_size(x.next)
                   + pg_column_size(x.tasks) + pg_column_size(x.metadata) + coalesce(pg_column_size(x.opaque), 0)
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
                    select k.checkpoint_id, k.parent_checkpoint_id, k.run_id, k.channels, k.next, k.metadata, k.opaque,
                           k.state_bytes, k.created_at,
                           -- With the reports of runs, which are of the source, up to the beginning of the copy.
                           agent.render_tasks(
                               k.deployment_id, k.thread_id, k.checkpoint_ns, k.checkpoint_id, k.tasks,
                               p_copy.started_at) as tasks
                      from agent.checkpoints k
                     where k.deployment_id = p_copy.deployment_id
                       and k.thread_id = p_copy.source_id
                       and k.checkpoint_ns = v_ns
                       and k.checkpoint_id = up.parent_checkpoint_id
                     limit 1
                   ) x
             where up.bytes < v_left
        ),
        copied as (
            insert into agent.checkpoints (
                deployment_id, thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, run_id, channels, next,
                tasks, metadata, opaque, state_bytes, created_at)
            select p_copy.deployment_id, p_copy.thread_id, v_ns, u.checkpoint_id, u.parent_checkpoint_id, u.run_id,
                   u.channels, u.next, u.tasks, u.metadata, u.opaque, u.state_bytes, u.created_at
              from up u
             where u.depth > 0
                on conflict (deployment_id, thread_id, checkpoint_ns, checkpoint_id) do nothing
            returning checkpoint_id
        ),
        runs as (
            insert into agent.copied_runs (deployment_id, thread_id, run_id, metadata)
            select p_copy.deployment_id, p_copy.thread_id, r.run_id, o.metadata
              from (
                    select distinct u.run_id
                      from up u
                     where u.run_id is not null
                   ) r
             cross join lateral agent.find_origin(p_copy.deployment_id, p_copy.source_id, r.run_id) o
                on conflict (deployment_id, thread_id, run_id) do nothing
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
        perform agent.copy_ranges(p_copy, false, v_ns, v_ids[2 :], v_parents[2 :]);

        v_left := v_left - v_bytes;
        -- A runner may have sent a checkpoint that is its own ancestor.
        continue when v_next is not null and v_found > 0 and v_copied = v_found;

        v_left := v_left - 50000;
        select x.checkpoint_ns into v_ns
          from agent.checkpoints x
         where x.deployment_id = p_copy.deployment_id
           and x.thread_id = p_copy.source_id
           and x.checkpoint_ns > v_ns
         order by x.deployment_id, x.thread_id, x.checkpoint_ns, x.checkpoint_id
         limit 1;
        -- Those that were saved later do not belong to the head that is copied.
        select x.checkpoint_id into v_next
          from agent.checkpoints x
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
       set checkpoint_ns = v_ns,
           next_checkpoint_id = v_next
     where c.deployment_id = p_copy.deployment_id
       and c.thread_id = p_copy.thread_id;
    return case when v_ns is null then v_left else least(v_left, 0) end;
end
$function$;

comment on function agent.copy_checkpoints(agent.thread_copies, bigint) is
    'Copies the checkpoints of a thread into its copy.';
