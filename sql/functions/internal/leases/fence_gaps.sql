-- SPDX-License-Identifier: Apache-2.0
-- The fence of events: ends the leases of which the event before those of a batch is missing, since a failover or a
-- restored backup has undone it. The worker gets the run under the next epoch, which it does not know, so it gives it
-- back (agent.check_leases), and the run is executed again from its last checkpoint. Events of an unfinished run are
-- never deleted, so the one before is there in all other cases.
-- p_leases: what agent.fence_leases returns. p_event_runs, p_event_seqs: as in agent.save_batch.
-- Returns: p_leases without those; null for none.
-- Locks:   the caller holds the queue rows.
create or replace function agent.fence_gaps(
    p_leases agent.run_queue[],
    p_runs agent.leased_run[],
    p_event_runs integer[],
    p_event_seqs bigint[]
) returns agent.run_queue[]
language plpgsql volatile security invoker
-- The leases are joined by hash, as in agent.save_events.
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set enable_mergejoin = off set enable_hashjoin = on set plan_cache_mode = force_generic_plan
as $function$
declare
    v_gaps agent.run_queue[];
begin
    -- The batch has the first event of each of its runs: the usual one. The statement below opens all partitions.
    if p_leases is null or cardinality(array_positions(p_event_seqs, 0::bigint)) = (
        select count(k.last_event_seq) from unnest(p_runs) k)
    then
        return p_leases;
    end if;
    v_gaps := (
        select array_agg(q)
          from (
                select k.deployment_id, k.run_id, coalesce(i.seq - 1, k.last_event_seq) as seq
                  from (select x.*, row_number() over () as n from unnest(p_runs) x) k
                  left join (
                        select x.run, min(x.seq) as seq
                          from unnest(p_event_runs, p_event_seqs) as x (run, seq)
                         group by x.run
                       ) i on i.run = k.n
               ) f
          join unnest(p_leases) q
            on q.deployment_id = f.deployment_id
           and q.run_id = f.run_id
         -- The limit prevents a join, as in agent.find_lease.
         where f.seq >= 0
           and (
                select e.seq
                  from agent.run_events e
                 where e.deployment_id = q.deployment_id
                   and e.bucket = q.events_bucket
                   and e.run_id = q.run_id
                   and e.seq = f.seq
                 limit 1) is null);
    if v_gaps is null then
        return p_leases;
    end if;

    update agent.run_queue q
       set epoch = q.epoch + 1
     where q.ctid = any (array(
            select i.ctid
              from unnest(v_gaps) g
             cross join lateral (
                    select x.ctid
                      from agent.run_queue x
                     where x.run_id = g.run_id
                       and x.deployment_id is not distinct from g.deployment_id
                     limit 1
                   ) i));
    return (
        select array_agg(l)
          from unnest(p_leases) l
         where not exists (
                select from unnest(v_gaps) g where g.run_id = l.run_id and g.deployment_id = l.deployment_id));
end
$function$;

comment on function agent.fence_gaps(agent.run_queue[], agent.leased_run[], integer[], bigint[]) is
    'Ends the leases of which a batch leaves out events.';
