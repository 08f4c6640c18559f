-- SPDX-License-Identifier: Apache-2.0
-- Saves the writes of a task. Of several writes of a run with one idx the first counts, or the last if idx is negative;
-- the writes of other runs are kept (agent.checkpoint_writes). The snapshot need not be stored. A write that is to be
-- swept with a deleted snapshot of that id (agent.write_sweeps) is replaced.
-- Returns: the uses of blobs, negative for values that were replaced. Raises an error of class 22 for writes that are
--          not in the notation of the protocol, and beyond 65,536 of them or of their digests.
-- Locks:   the caller holds the thread and the queue row.
create or replace function agent.save_writes(
    p_lease agent.run_queue,
    p_put agent.batch_record
) returns agent.blob_use[]
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set enable_hashjoin = off set enable_mergejoin = off set plan_cache_mode = force_generic_plan
as $function$
declare
    v_uses      agent.blob_use[];
    v_is_wrong  boolean;
    v_deletions bigint;
    v_swept     bigint;
begin
    perform agent.check_record(p_put);
    select t.state_deletions into v_deletions
      from agent.threads t
     where t.deployment_id = p_lease.deployment_id
       and t.thread_id = p_lease.thread_id;
    select s.deletions into v_swept
      from agent.find_write_sweep(
               p_lease.deployment_id, p_lease.thread_id, p_put.checkpoint_ns, p_put.checkpoint_id) s;
    select bool_or((json_array_length(w.value) = 3
                    and json_typeof(w.value -> 0) = 'number'
                    and json_typeof(w.value -> 1) = 'string') is not true)
      into v_is_wrong
      from json_array_elements(p_put.writes) w (value);
    if v_is_wrong then
        raise exception using errcode = 'invalid_parameter_value', message = 'a write is not one of the protocol';
    end if;

    with written as materialized (
        select distinct on (w.idx) w.idx, w.channel, w.digests, w.keep
          from (
                select (x.value ->> 0)::integer as idx, x.value ->> 1 as channel, r.digests, r.keep, x.pos
                  from json_array_elements(p_put.writes) with ordinality x (value, pos)
                 cross join lateral agent.parse_reference(x.value -> 2) r
               ) w
         order by w.idx, case when w.idx < 0 then - w.pos else w.pos end
    ),
    replaced as (
        select o.digests
          from written w
         cross join lateral (
                select y.digests, y.deletions
                  from agent.checkpoint_writes y
                 where y.deployment_id = p_lease.deployment_id
                   and y.thread_id = p_lease.thread_id
                   and y.checkpoint_ns = p_put.checkpoint_ns
                   and y.checkpoint_id = p_put.checkpoint_id
                   and y.task_id = p_put.task_id
                   and y.idx = w.idx
                   and y.run_seq = p_lease.thread_seq
                 limit 1
               ) o
         where w.idx < 0
            or o.deletions < v_swept
    ),
    stored as (
        insert into agent.checkpoint_writes as t (
            deployment_id, thread_id, checkpoint_ns, checkpoint_id, task_id, idx, run_seq, run_id, task_path, channel,
            digests, is_list, deletions)
        select p_lease.deployment_id, p_lease.thread_id, p_put.checkpoint_ns, p_put.checkpoint_id, p_put.task_id,
               w.idx, p_lease.thread_seq, p_lease.run_id, coalesce(p_put.task_path, ''), w.channel, w.digests,
               w.keep is not null, v_deletions
          from written w
            on conflict (deployment_id, thread_id, checkpoint_ns, checkpoint_id, task_id, idx, run_seq) do update
           set run_id = excluded.run_id,
               task_path = excluded.task_path,
               channel = excluded.channel,
               digests = excluded.digests,
               is_list = excluded.is_list,
               deletions = excluded.deletions
         where t.idx < 0
            or t.deletions < v_swept
        returning t.digests
    )
    select array_agg(row(p_lease.deployment_id, p_lease.thread_id, d.digest, d.uses)::agent.blob_use),
           (
                select bool_or(w.keep <> 0) or count(*) > agent.most_digests()
                       or sum(cardinality(w.digests)) > agent.most_digests()
                  from written w)
      into v_uses, v_is_wrong
      from (
            select unnest(s.digests), 1
              from stored s
            union all
            select unnest(r.digests), -1
              from replaced r
           ) d (digest, uses);
    if v_is_wrong then
        raise exception using
            errcode = 'invalid_parameter_value',
            message = 'writes keep elements of a list, or are too many';
    end if;
    return coalesce(v_uses, '{}');
end
$function$;

comment on function agent.save_writes(agent.run_queue, agent.batch_record) is 'Saves the writes of a task.';
