-- SPDX-License-Identifier: Apache-2.0
-- GET /threads/{thread_id}/storage: how many bytes the state of a thread takes, as they are stored, without indexes.
-- Returns: ok with an object: checkpoints, the states that the API shows; channel_values, the values of these states
--          and of the graph's library, of which by_channel has only those of the states; pending_writes, the writes of
--          the library's tasks. body null: the thread has more than 1,000 checkpoints, 1 MB of short values in them or
--          10,000 rows of another kind, and p_max_bytes is not null. thread_not_found.
-- Bound:   by_channel has the 1,024 largest channels of the newest 100,000 values.
--          Held by `limit c_channels` in sql/functions/internal/values/measure_channels.sql.
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
        (
            select count(*) > 1000 or sum(k.bytes) > 1048576
              from (
                    select agent.stored_bytes(x.channels) as bytes
                      from agent.checkpoints x
                     where x.deployment_id = p_deployment_id
                       and x.thread_id = p_thread_id
                     limit 1001
                   ) k)
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
           coalesce(sum(pg_column_size(k.next) + pg_column_size(k.tasks) + pg_column_size(k.metadata)), 0) as bytes
      into v_checkpoints
      from agent.checkpoints k
     where k.deployment_id = p_deployment_id
       and k.thread_id = p_thread_id;
    select m.count, m.bytes, m.by_channel, m.is_partial into v_values
      from agent.measure_channels(p_deployment_id, p_thread_id) m;
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
            'by_channel', v_values.by_channel,
            'by_channel_is_partial', v_values.is_partial),
        'pending_writes', json_build_object('count', v_writes.count, 'bytes', v_writes.bytes));
end
$function$;

comment on function agent.get_thread_storage(uuid, uuid, bigint) is 'GET /threads/{thread_id}/storage.';
