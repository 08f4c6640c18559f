-- SPDX-License-Identifier: Apache-2.0
-- The fence of a batch: as agent.fence_leases, and of the leases under which a batch before this one is not there. A
-- failover or a restored backup may have undone the last ones, whatever they had; then this batch would leave a gap.
-- The worker numbers the batches of a lease that have more than events, from 1, and the queue row has the number of the
-- last one. The number before is the usual case; an equal one is that of a batch that is repeated after an unclear
-- commit, perhaps in other parts: its rows that are stored change nothing. Any other one fences the run. A statement
-- that the server executes late, after others of the run, saves nothing, and does not take the lease away either.
-- A batch of events alone has the number of the next one, and leaves the row as it is: a version of the row for each of
-- them would slow the next ones while another transaction holds a snapshot. Instead each batch, with events or without,
-- names the last event that is saved, which has to be there: those of an unfinished run are never deleted.
-- Returns: the queue rows as they were; null for none.
-- Locks:   the queue rows, in the order of their keys; call agent.lock_threads first.
create or replace function agent.fence_batch(p_worker_id bigint, p_runs agent.leased_run[])
returns agent.run_queue[]
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set enable_hashjoin = off set enable_mergejoin = off set plan_cache_mode = force_generic_plan
as $function$
declare
    v_leases  agent.run_queue[];
    v_owners  uuid[];
    v_buckets date[];
    v_ids     uuid[];
    v_seqs    bigint[];
    v_gaps    uuid[] := '{}';
    v_rows    tid[];
begin
    -- The number is compared after any wait. A run that ends has no row afterwards.
    select array_agg(f.lease) filter (where f.is_held),
           array_agg((f.lease).deployment_id) filter (where f.is_held and f.seq is not null),
           array_agg((f.lease).events_bucket) filter (where f.is_held and f.seq is not null),
           array_agg((f.lease).run_id) filter (where f.is_held and f.seq is not null),
           array_agg(f.seq) filter (where f.is_held and f.seq is not null),
           array_agg(f.ctid) filter (where f.is_next)
      into v_leases, v_owners, v_buckets, v_ids, v_seqs, v_rows
      from (
            select l.lease, l.ctid, k.saved_event_seq as seq,
                   (l.lease).batch_no between k.batch_no - 1 and k.batch_no as is_held,
                   (l.lease).batch_no = k.batch_no - 1 and k.is_counted and k.status is null as is_next
              from (
                    select x.*
                      from unnest(p_runs) x
                     order by x.deployment_id, x.run_id
                    offset 0
                   ) k
             cross join lateral (
                    select q as lease, q.ctid
                      from agent.run_queue q
                     where q.run_id = k.run_id
                       and q.deployment_id is not distinct from k.deployment_id
                       and q.epoch = k.epoch
                       and q.worker_id is not distinct from p_worker_id
                       for no key update
                   ) l
            offset 0
           ) f;

    -- A statement of its own sees what the one above has waited for. It opens all partitions.
    if v_ids is not null then
        v_gaps := array(
            select x.run_id
              from unnest(v_owners, v_buckets, v_ids, v_seqs) as x (deployment_id, bucket, run_id, seq)
             -- The offset prevents a join.
             where not exists (
                    select
                      from agent.run_events e
                     where e.deployment_id = x.deployment_id
                       and e.bucket = x.bucket
                       and e.run_id = x.run_id
                       and e.seq = x.seq
                    offset 0));
    end if;
    if v_gaps <> '{}' then
        v_leases := (select array_agg(l) from unnest(v_leases) l where l.run_id <> all (v_gaps));
    end if;
    if v_rows is not null then
        update agent.run_queue q
           set batch_no = q.batch_no + 1
         where q.ctid = any (v_rows)
           and q.run_id <> all (v_gaps);
    end if;
    return v_leases;
end
$function$;

comment on function agent.fence_batch(bigint, agent.leased_run[]) is
    'Locks the leases that a worker still holds, and looks for the batch before.';
