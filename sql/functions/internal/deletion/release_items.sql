-- SPDX-License-Identifier: Apache-2.0
-- Prepares the deletion of checkpoints, or of snapshots. Attaches their remaining children to the nearest remaining
-- ancestor, which inherits the elements that these children contain, and records all other elements in
-- agent.item_sweeps for agent.delete_items. Only a checkpoint and its descendants contain the elements that it stored,
-- and each child contains those that its own descendants contain: so reading the children of the ancestor is enough.
-- p_namespaces, p_ids, p_ancestors: the checkpoints and the ancestor of each, in the same namespace; the thread's id
-- for none. p_positions: an object with the position in these arrays of each id followed by its namespace.
-- p_is_attaching: some children may have been attached to the ancestor before (agent.attach_children).
-- Returns: nothing.
-- Locks:   the caller holds the thread.
create or replace function agent.release_items(
    p_deployment_id uuid,
    p_thread_id uuid,
    p_is_snapshot boolean,
    p_positions jsonb,
    p_namespaces text[],
    p_ids uuid[],
    p_ancestors uuid[],
    p_is_attaching boolean
) returns void
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_hashjoin = off
set enable_mergejoin = off set plan_cache_mode = force_generic_plan
as $function$
declare
    v_children tid[];
    v_parents  uuid[];
    v_is_leaf  boolean;
begin
    select array_agg(x.row_id), array_agg(nullif(i.ancestor_id, p_thread_id))
      into v_children, v_parents
      from unnest(p_namespaces, p_ids, p_ancestors) i (checkpoint_ns, checkpoint_id, ancestor_id)
     cross join lateral agent.find_children(
            p_deployment_id, p_thread_id, p_is_snapshot, i.checkpoint_ns, i.checkpoint_id) x
     where not p_positions ? (x.checkpoint_id || i.checkpoint_ns);
    v_is_leaf := v_children is null and not p_is_attaching;
    perform agent.set_parents(p_is_snapshot, v_children, v_parents);

    with inherited as (
        delete from agent.inherited_items h
         where h.ctid = any (array(
                select x.ctid
                  from (
                        select distinct k.checkpoint_ns, k.checkpoint_id
                          from unnest(p_namespaces || p_namespaces, p_ids || p_ancestors)
                               k (checkpoint_ns, checkpoint_id)
                       ) i
                 cross join lateral (
                        select y.ctid
                          from agent.inherited_items y
                         where y.deployment_id = p_deployment_id
                           and y.thread_id = p_thread_id
                           and y.is_snapshot = p_is_snapshot
                           and y.checkpoint_ns = i.checkpoint_ns
                           and y.checkpoint_id = i.checkpoint_id
                        offset 0
                       ) x))
        returning h.checkpoint_ns, h.checkpoint_id, h.list_id, h.first, h.until
    ),
    released as (
        select r.checkpoint_ns, r.ancestor_id, r.list_id, min(r.first) as first, max(r.until) as until
          from (
                select i.checkpoint_ns, i.ancestor_id, v.list_ids[cardinality(v.list_ids)], v.stored_from,
                       v.ends[cardinality(v.ends)]
                  from unnest(p_namespaces, p_ids, p_ancestors) i (checkpoint_ns, checkpoint_id, ancestor_id)
                 cross join lateral agent.find_channels(
                        p_deployment_id, p_thread_id, p_is_snapshot, i.checkpoint_ns, i.checkpoint_id) c
                 cross join lateral unnest(c.channels) v
                 where v.stored_from is not null
                union all
                select h.checkpoint_ns,
                       coalesce(
                           p_ancestors[(p_positions ->> (h.checkpoint_id || h.checkpoint_ns))::integer],
                           h.checkpoint_id),
                       h.list_id, h.first, h.until
                  from inherited h
               ) r (checkpoint_ns, ancestor_id, list_id, first, until)
         group by r.checkpoint_ns, r.ancestor_id, r.list_id
    ),
    contained as (
        select a.checkpoint_ns, a.ancestor_id, s.list_id, max(s.until) as until
          from (
                select distinct r.checkpoint_ns, r.ancestor_id
                  from released r
                 where not v_is_leaf or exists (select from inherited)
               ) a
         cross join lateral agent.find_children(
                p_deployment_id, p_thread_id, p_is_snapshot, a.checkpoint_ns, a.ancestor_id) x
         cross join lateral unnest(x.channels) v
         cross join lateral unnest(v.list_ids, v.ends) s (list_id, until)
         where not p_positions ? (x.checkpoint_id || a.checkpoint_ns)
         group by a.checkpoint_ns, a.ancestor_id, s.list_id
    ),
    decided as (
        select d.checkpoint_ns, d.ancestor_id, d.list_id, max(d.first) as first, max(d.until) as until,
               greatest(max(d.first), least(max(d.until), max(d.contained))) as contained
          from (
                select r.checkpoint_ns, r.ancestor_id, r.list_id, r.first, r.until, 0
                  from released r
                union all
                select c.checkpoint_ns, c.ancestor_id, c.list_id, null, null, c.until
                  from contained c
               ) d (checkpoint_ns, ancestor_id, list_id, first, until, contained)
         group by d.checkpoint_ns, d.ancestor_id, d.list_id
        having max(d.until) is not null
    ),
    kept as (
        insert into agent.inherited_items (
            deployment_id, thread_id, is_snapshot, checkpoint_ns, checkpoint_id, list_id, first, until)
        select p_deployment_id, p_thread_id, p_is_snapshot, d.checkpoint_ns, d.ancestor_id, d.list_id, d.first,
               d.contained
          from decided d
         where d.contained > d.first
    )
    insert into agent.item_sweeps as w (deployment_id, thread_id, list_id, first, is_snapshot)
    select p_deployment_id, p_thread_id, d.list_id, min(d.contained), p_is_snapshot
      from decided d
     where d.contained < d.until
     group by d.list_id
        on conflict (deployment_id, thread_id, list_id) do update
       set first = least(w.first, excluded.first);
end
$function$;

comment on function agent.release_items(uuid, uuid, boolean, jsonb, text[], uuid[], uuid[], boolean) is
    'Prepares the deletion of checkpoints.';
