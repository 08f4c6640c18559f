-- SPDX-License-Identifier: Apache-2.0
-- The checkpoints of a batch that are to be saved, namespace by namespace in their order: those of leases that the
-- worker holds, which are not stored.
-- Returns: one row for each; previous: the id of the row before it, null when that has another thread or namespace;
--          parent: when that is null, the channels of its parent, if it is stored.
-- Locks:   none.
create or replace function agent.find_new_checkpoints(
    p_worker_id bigint,
    p_checkpoints agent.batch_checkpoint[]
) returns table (
    deployment_id uuid,
    thread_id uuid,
    run_id uuid,
    checkpoint_ns text,
    checkpoint_id uuid,
    parent_checkpoint_id uuid,
    channels agent.channel_content[],
    next json,
    tasks json,
    metadata json,
    format text,
    parent agent.channel_value[],
    previous uuid
)
language sql stable parallel safe
-- No SET clause: it would keep the body from being inlined into FROM.
as $function$
    select n.deployment_id, n.thread_id, n.run_id, n.checkpoint_ns, n.checkpoint_id, n.parent_checkpoint_id,
           n.channels, n.next, n.tasks, n.metadata, n.format, k.channels, n.previous
      from (
            select q.deployment_id, q.thread_id, q.run_id, i.checkpoint_ns, i.checkpoint_id, i.parent_checkpoint_id,
                   i.channels, i.next, i.tasks, i.metadata, i.format, i.ordinality,
                   lag(i.checkpoint_id) over (
                       partition by q.deployment_id, q.thread_id, i.checkpoint_ns order by i.ordinality) as previous
              from unnest(p_checkpoints) with ordinality i
             cross join lateral agent.find_lease(p_worker_id, i.deployment_id, i.run_id, i.epoch) q
             where (
                    select x.checkpoint_id
                      from agent.find_checkpoint(q.deployment_id, q.thread_id, i.checkpoint_ns, i.checkpoint_id) x
                   ) is null
           ) n
      left join lateral (
            select x.channels
              from agent.find_checkpoint(n.deployment_id, n.thread_id, n.checkpoint_ns, n.parent_checkpoint_id) x
             where n.previous is null
             limit 1
           ) k on true
     order by n.deployment_id, n.thread_id, n.checkpoint_ns, n.ordinality
$function$;

comment on function agent.find_new_checkpoints(bigint, agent.batch_checkpoint[]) is
    'The checkpoints of a batch that are to be saved.';
