-- SPDX-License-Identifier: Apache-2.0
-- Saves what the libraries of leased runs put: snapshots, writes, and the blobs that these name. Blobs that are stored
-- already change nothing, so that a batch can be repeated. The uses of a batch are counted together, and a blob is
-- inserted with its count.
-- Returns: nothing. Raises an error of class 22 as agent.save_snapshot, agent.save_writes, agent.save_part and
--          agent.save_blobs, for a blob that is not in the notation of the protocol, and beyond 65,536 values in the
--          writes of a snapshot, those of all runs: they are read and copied together.
-- Locks:   the caller holds the threads and the queue rows.
create or replace function agent.save_records(
    p_worker_id bigint,
    p_records agent.batch_record[]
) returns void
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_hashjoin = off
set enable_mergejoin = off set plan_cache_mode = force_generic_plan
as $function$
declare
    c_parts  constant integer := 16;
    v_row    record;
    v_lease  agent.run_queue;
    v_record agent.batch_record;
    v_blob   agent.checkpoint_blobs;
    v_blobs  agent.checkpoint_blobs[] := '{}';
    v_uses   agent.blob_use[] := '{}';
begin
    for v_row in
        select q as lease, r as record
          from unnest(p_records) with ordinality r
         cross join lateral agent.find_lease(p_worker_id, r.deployment_id, r.run_id, r.epoch) q
         order by r.ordinality
    loop
        v_lease := v_row.lease;
        v_record := v_row.record;
        if v_record.type = 'put' then
            v_uses := v_uses || agent.save_snapshot(v_lease, v_record);
        elsif v_record.type = 'put_writes' then
            v_uses := v_uses || agent.save_writes(v_lease, v_record);
        else
            v_blob.deployment_id := v_lease.deployment_id;
            v_blob.thread_id := v_lease.thread_id;
            v_blob.digest := v_record.digest;
            v_blob.type := v_record.value_type;
            v_blob.part := coalesce(v_record.part::integer, 0);
            v_blob.parts := coalesce(v_record.parts::integer, 1);
            v_blob.is_text := v_record.text is not null;
            v_blob.content := case
                when v_record.base64 is null then convert_to(v_record.text, 'UTF8')
                when v_record.text is null then decode(v_record.base64, 'base64')
            end;
            if (v_blob.digest is not null and v_blob.content is not null and v_blob.type ~ '^[!-~]{1,32}$'
                and v_blob.parts between 1 and c_parts and v_blob.part between 0 and v_blob.parts - 1) is not true
            then
                raise exception using
                    errcode = 'invalid_parameter_value',
                    message = 'a blob is not one of the protocol';
            elsif v_blob.parts = 1 then
                v_blobs := v_blobs || v_blob;
            else
                perform agent.save_part(v_blob);
            end if;
        end if;
    end loop;
    -- Once for each snapshot: to count them for each record would be quadratic.
    perform from (
            select distinct q.deployment_id, q.thread_id, r.checkpoint_ns, r.checkpoint_id
              from unnest(p_records) r
             cross join lateral agent.find_lease(p_worker_id, r.deployment_id, r.run_id, r.epoch) q
             where r.type = 'put_writes'
            ) k
      where (
            select sum(greatest(1, cardinality(x.digests)))
              from (
                    select w.digests
                      from agent.checkpoint_writes w
                     where w.deployment_id = k.deployment_id
                       and w.thread_id = k.thread_id
                       and w.checkpoint_ns = k.checkpoint_ns
                       and w.checkpoint_id = k.checkpoint_id
                       and w.deletions >= coalesce((
                            select s.deletions
                              from agent.find_write_sweep(
                                       k.deployment_id, k.thread_id, k.checkpoint_ns, k.checkpoint_id) s), 0)
                       and (w.run_id in (
                            select s.run_id
                              from agent.find_swept_runs(k.deployment_id, k.thread_id) s)) is not true
                     limit agent.most_digests() + 1
                   ) x) > agent.most_digests();
    if found then
        raise exception using errcode = 'invalid_parameter_value', message = 'a snapshot has too many writes';
    end if;
    perform agent.save_blobs(v_blobs, v_uses);
end
$function$;

comment on function agent.save_records(bigint, agent.batch_record[]) is
    'Saves what the libraries of leased runs put.';
