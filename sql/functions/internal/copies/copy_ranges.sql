-- SPDX-License-Identifier: Apache-2.0
-- Records in agent.copy_lists the elements that agent.copy_items has to copy for checkpoints or snapshots of a copy:
-- 1. those that they stored;
-- 2. those that a parent inherited and that they contain: the parent's copy inherits these, and no others.
-- p_ids, p_parents: checkpoints of one namespace that the copy has, and the parent of each.
-- Returns: nothing.
-- Locks:   the caller holds the row of the copy.
create or replace function agent.copy_ranges(
    p_copy agent.thread_copies,
    p_is_snapshot boolean,
    p_checkpoint_ns text,
    p_ids uuid[],
    p_parents uuid[]
) returns void
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set enable_hashjoin = off set enable_mergejoin = off set plan_cache_mode = force_generic_plan
as $function$
begin
    with parent_items as materialized (
        select i.checkpoint_id, i.parent_id, h.list_id, h.first, h.until
          from unnest(p_ids, p_parents) i (checkpoint_id, parent_id)
         cross join lateral (
                select x.list_id, x.first, x.until
                  from agent.inherited_items x
                 where x.deployment_id = p_copy.deployment_id
                   and x.thread_id = p_copy.source_id
                   and x.is_snapshot = p_is_snapshot
                   and x.checkpoint_ns = p_checkpoint_ns
                   -- For the source: elements of deleted first checkpoints.
                   and x.checkpoint_id = coalesce(i.parent_id, p_copy.source_id)
                offset 0
               ) h
    ),
    inherited as (
        insert into agent.inherited_items (
            deployment_id, thread_id, is_snapshot, checkpoint_ns, checkpoint_id, list_id, first, until)
        select p_copy.deployment_id, p_copy.thread_id, p_is_snapshot, p_checkpoint_ns,
               coalesce(d.parent_id, p_copy.thread_id), d.list_id, max(d.first),
               least(max(d.until), max(d.contained))
          from (
                select r.parent_id, r.list_id, r.first, r.until, null
                  from parent_items r
                union all
                select k.parent_id, s.list_id, null, null, s.until
                  from (
                        select distinct r.checkpoint_id, r.parent_id
                          from parent_items r
                       ) k
                 cross join lateral agent.find_channels(
                        p_copy.deployment_id, p_copy.thread_id, p_is_snapshot, p_checkpoint_ns, k.checkpoint_id) c
                 cross join lateral unnest(c.channels) v
                 cross join lateral unnest(v.list_ids, v.ends) s (list_id, until)
               ) d (parent_id, list_id, first, until, contained)
         group by d.parent_id, d.list_id
        having max(d.contained) > max(d.first)
            on conflict (deployment_id, thread_id, is_snapshot, checkpoint_ns, checkpoint_id, list_id) do nothing
        returning list_id, first, until
    )
    insert into agent.copy_lists as l (deployment_id, thread_id, list_id, first, until)
    select p_copy.deployment_id, p_copy.thread_id, s.list_id, min(s.first), max(s.until)
      from (
            select v.list_ids[cardinality(v.list_ids)], v.stored_from, v.ends[cardinality(v.ends)]
              from unnest(p_ids) i (checkpoint_id)
             cross join lateral agent.find_channels(
                    p_copy.deployment_id, p_copy.thread_id, p_is_snapshot, p_checkpoint_ns, i.checkpoint_id) c
             cross join lateral unnest(c.channels) v
             where v.stored_from is not null
            union all
            select i.list_id, i.first, i.until
              from inherited i
           ) s (list_id, first, until)
     group by s.list_id
        on conflict (deployment_id, thread_id, list_id) do update
       set first = least(l.first, excluded.first),
           until = greatest(l.until, excluded.until);
end
$function$;

comment on function agent.copy_ranges(agent.thread_copies, boolean, text, uuid[], uuid[]) is
    'Notes the elements that checkpoints of a copy contain.';
