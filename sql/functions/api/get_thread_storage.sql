-- SPDX-License-Identifier: Apache-2.0
-- GET /threads/{thread_id}/storage: how many bytes the state of a thread takes, as they are stored, without indexes.
-- Returns: ok with an object: checkpoints, the states that are shown; channel_values, with the elements of their lists
--          and the values of a graph's library, of which by_channel has only the former; pending_writes, of the
--          library's tasks. body null: the thread has more than 1,000 checkpoints or 10,000 rows of another kind, and
--          p_max_bytes is not null. thread_not_found.
-- Bound:   by_channel has the 1,024 largest channels. Held by `limit c_channels`.
-- Locks:   none.
create or replace function agent.get_thread_storage(
    p_deployment_id uuid,
    p_thread_id uuid,
    p_max_bytes bigint default null,
    out code text,
    out body text
)
language plpgsql stable security invoker
set search_path = '' set jit = off set enable_seqscan = off set plan_cache_mode = force_generic_plan
as $function$
declare
    c_channels    constant integer := 1024;
    v_checkpoints record;
    v_values      record;
    v_blobs       record;
    v_writes      record;
begin
    perform from agent.threads t
      where t.deployment_id = p_deployment_id
        and t.thread_id = p_thread_id
        and not t.is_deleted;
    if not found then
        code := 'thread_not_found';
        return;
    end if;
    code := 'ok';
    if p_max_bytes is not null and (
        exists (
            select from agent.checkpoints k
             where k.deployment_id = p_deployment_id
               and k.thread_id = p_thread_id
            offset 1000)
        or exists (
            select from agent.checkpoint_items i
             where i.deployment_id = p_deployment_id
               and i.thread_id = p_thread_id
            offset 10000)
        or exists (
            select from agent.checkpoint_blobs b
             where b.deployment_id = p_deployment_id
               and b.thread_id = p_thread_id
            offset 10000)
        or exists (
            select from agent.checkpoint_writes w
             where w.deployment_id = p_deployment_id
               and w.thread_id = p_thread_id
            offset 10000))
    then
        return;
    end if;
    select count(*) as count,
           coalesce(sum(pg_column_size(k.next) + pg_column_size(k.tasks) + pg_column_size(k.metadata)
                        + coalesce(pg_column_size(k.opaque), 0)), 0) as bytes
      into v_checkpoints
      from agent.checkpoints k
     where k.deployment_id = p_deployment_id
       and k.thread_id = p_thread_id;
    with channels as materialized (
        select c.name, c.stored_from, c.content, c.list_ids
          from agent.checkpoints k
         cross join lateral unnest(k.channels) c
         where k.deployment_id = p_deployment_id
           and k.thread_id = p_thread_id
    ), lists as (
        select i.list_id, sum(pg_column_size(i.content)) as bytes
          from agent.checkpoint_items i
         where i.deployment_id = p_deployment_id
           and i.thread_id = p_thread_id
           and not i.is_digests
         group by i.list_id
    ), stored as (
        select c.name, count(*) as versions, coalesce(sum(octet_length(c.content)), 0) as bytes
          from channels c
         where c.content is not null
            or c.stored_from is not null
         group by c.name
         union all
        select d.name, 0, sum(l.bytes)
          from (
                select distinct c.name, x.list_id
                  from channels c
                 cross join lateral unnest(c.list_ids) as x (list_id)
               ) d
          join lists l on l.list_id = d.list_id
         group by d.name
    ), named as (
        select s.name, sum(s.versions) as versions, sum(s.bytes) as bytes
          from stored s
         group by s.name
    )
    select coalesce(sum(n.versions), 0) as count,
           coalesce(sum(n.bytes), 0) as bytes,
           (
            select coalesce(json_object_agg(
                       x.name, json_build_object('versions', x.versions, 'bytes', x.bytes) order by x.name), '{}')
              from (
                    select *
                      from named
                     order by bytes desc, name
                     limit c_channels
                   ) x
           ) as by_channel
      into v_values
      from named n;
    select count(*) filter (where b.part = 0) as count, coalesce(sum(pg_column_size(b.content)), 0) as bytes
      into v_blobs
      from agent.checkpoint_blobs b
     where b.deployment_id = p_deployment_id
       and b.thread_id = p_thread_id;
    select count(*) as count, coalesce(sum(pg_column_size(w.digests)), 0) as bytes
      into v_writes
      from agent.checkpoint_writes w
     where w.deployment_id = p_deployment_id
       and w.thread_id = p_thread_id;
    body := json_build_object(
        'thread_id', p_thread_id,
        'total_bytes', v_checkpoints.bytes + v_values.bytes + v_blobs.bytes + v_writes.bytes,
        'checkpoints', json_build_object('count', v_checkpoints.count, 'bytes', v_checkpoints.bytes),
        'channel_values', json_build_object(
            'count', v_values.count + v_blobs.count,
            'bytes', v_values.bytes + v_blobs.bytes,
            'by_channel', v_values.by_channel),
        'pending_writes', json_build_object('count', v_writes.count, 'bytes', v_writes.bytes));
end
$function$;

comment on function agent.get_thread_storage(uuid, uuid, bigint) is 'GET /threads/{thread_id}/storage.';
