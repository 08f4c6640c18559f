-- SPDX-License-Identifier: Apache-2.0
-- The parts of one snapshot that a delta reads. p_open: an object with the names of its channels and their order.
-- Returns: one row or none: parent_checkpoint_id; channels: those that the snapshot has a value of, in that order, and
--          writes: the number of writes to it, both empty for a snapshot of a deleted run; examined: how many channels
--          and writes were.
-- Locks:   none.
create or replace function agent.find_delta_step(
    p_deployment_id uuid,
    p_thread_id uuid,
    p_ns text,
    p_checkpoint_id uuid,
    p_open jsonb
) returns table (parent_checkpoint_id uuid, channels agent.channel_value[], writes bigint, examined bigint)
language sql stable parallel safe
-- No SET clause: it would keep the body from being inlined into FROM.
as $function$
    select x.parent_checkpoint_id,
           -- One scan of the channels for all names, by a map: a search for each name would be quadratic.
           case when d.is_swept then '{}' else array(
               select c
                 from unnest(x.channels) c
                where p_open ? c.name
                  and c.content is null
                order by (p_open ->> c.name)::integer) end,
           case when d.is_swept then 0 else d.writes end,
           cardinality(x.channels) + d.writes
      from agent.checkpoint_snapshots x
     cross join lateral (
            select exists (
                       select from agent.find_swept_runs(p_deployment_id, p_thread_id) s where s.run_id = x.run_id)
                       as is_swept,
                   (
                       select count(*)
                         from agent.checkpoint_writes w
                        where w.deployment_id = p_deployment_id
                          and w.thread_id = p_thread_id
                          and w.checkpoint_ns = p_ns
                          and w.checkpoint_id = p_checkpoint_id) as writes
            offset 0
           ) d
     where x.deployment_id = p_deployment_id
       and x.thread_id = p_thread_id
       and x.checkpoint_ns = p_ns
       and x.checkpoint_id = p_checkpoint_id
$function$;

comment on function agent.find_delta_step(uuid, uuid, text, uuid, jsonb) is
    'The parts of one snapshot that a delta reads.';
