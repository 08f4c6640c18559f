-- SPDX-License-Identifier: Apache-2.0
-- How many bytes the channels of a thread's checkpoints take, as they are stored, with the elements of their lists. By
-- channel only those of the newest checkpoints, with 100,000 values together: to tell which channel a list belongs to
-- takes more time than the sum of all.
-- Returns: count of the versions, bytes; by_channel: object of the 1,024 largest of {versions, bytes}; is_partial:
--          checkpoints were left out there.
-- Locks:   none.
create or replace function agent.measure_channels(
    p_deployment_id uuid,
    p_thread_id uuid,
    out count bigint,
    out bytes bigint,
    out by_channel json,
    out is_partial boolean
)
language plpgsql stable security invoker
set search_path = '' set jit = off set enable_seqscan = off set plan_cache_mode = force_generic_plan
as $function$
declare
    c_channels constant integer := 1024;
    c_values   constant integer := 100000;
    v_oldest   uuid;
begin
    select coalesce(sum(c.versions), 0), coalesce(sum(c.bytes), 0), coalesce(bool_or(c.before >= c_values), false),
           (min(c.checkpoint_id::text) filter (where c.before < c_values))::uuid
      into count, bytes, is_partial, v_oldest
      from (
            select k.checkpoint_id, v.versions, v.bytes,
                   sum(cardinality(k.channels)) over (order by k.checkpoint_id desc, k.checkpoint_ns)
                   - cardinality(k.channels) as before
              from agent.checkpoints k
             cross join lateral (
                    select count(*) as versions, sum(octet_length(x.content)) as bytes
                      from unnest(k.channels) x
                     where x.content is not null
                        or x.stored_from is not null
                   ) v
             where k.deployment_id = p_deployment_id
               and k.thread_id = p_thread_id
           ) c;
    bytes := bytes + coalesce((
        select sum(pg_column_size(i.content))
          from agent.checkpoint_items i
         where i.deployment_id = p_deployment_id
           and i.thread_id = p_thread_id
           and not i.is_digests), 0);
    with channels as (
        select c.name, c.content, c.list_ids, c.content is not null or c.stored_from is not null as is_version
          from agent.checkpoints k
         cross join lateral unnest(k.channels) c
         where k.deployment_id = p_deployment_id
           and k.thread_id = p_thread_id
           and k.checkpoint_id >= v_oldest
    ), stored as (
        select c.name, count(*) filter (where c.is_version) as versions,
               coalesce(sum(octet_length(c.content)), 0) as bytes
          from channels c
         group by c.name
         union all
        select d.name, 0, sum(pg_column_size(i.content))
          from (
                select distinct c.name, x.list_id
                  from channels c
                 cross join lateral unnest(c.list_ids) as x (list_id)
               ) d
          join agent.checkpoint_items i
            on i.deployment_id = p_deployment_id
           and i.thread_id = p_thread_id
           and i.list_id = d.list_id
         group by d.name
    )
    select coalesce(json_object_agg(n.name, json_build_object('versions', n.versions, 'bytes', n.bytes)
                                    order by n.name), '{}')
      into by_channel
      from (
            select s.name, sum(s.versions) as versions, sum(s.bytes) as bytes
              from stored s
             group by s.name
            having sum(s.versions) > 0 or sum(s.bytes) > 0
             order by sum(s.bytes) desc, s.name
             limit c_channels
           ) n;
end
$function$;

comment on function agent.measure_channels(uuid, uuid) is
    'How many bytes the channels of a thread''s checkpoints take.';
