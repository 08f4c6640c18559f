-- SPDX-License-Identifier: Apache-2.0
-- Ends runs of closed accounts that no worker executes, in error: nobody may claim them. At most 100 of those that are
-- ready; the next runs of their threads become ready by it, so that later claims end these. The parameters are those of
-- agent.lock_ready_runs: p_held is closed for a pool whose account is closed.
-- Returns: nothing.
-- Locks:   the threads, then their queue rows, skipping locked ones; takes the records.
create or replace function agent.end_closed_runs(
    p_deployment_ids uuid[],
    p_pools integer[],
    p_held text[]
) returns void
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set enable_hashjoin = off set enable_mergejoin = off set plan_cache_mode = force_generic_plan
as $function$
declare
    c_runs constant integer := 100;
    v_ends agent.run_end[];
begin
    v_ends := array(
        select agent.make_end(
                   l.lease, 'error',
                   json_build_object(
                       'error', 'AccountClosedError', 'message', 'The account was closed before the run began.'))
          from (
                select distinct d.id
                  from unnest(p_deployment_ids, p_pools) d (id, pool)
                 where p_held[d.pool] = 'closed'
               ) d
         cross join lateral (
                select c.run_id, c.thread_id
                  from agent.run_queue c
                 where c.deployment_id = d.id
                   and c.state = 'ready'
                   and c.op is null
                 limit c_runs
               ) c
         cross join lateral (
                select from agent.threads t
                 where t.deployment_id = d.id
                   and t.thread_id = c.thread_id
                   for no key update skip locked
               ) t
         cross join lateral (
                select q as lease
                  from agent.run_queue q
                 where q.run_id = c.run_id
                   and q.deployment_id is not distinct from d.id
                   and q.state = 'ready'
                   for no key update skip locked
               ) l
         limit c_runs);
    if cardinality(v_ends) > 0 then
        perform agent.finalize_runs(null, v_ends);
    end if;
end
$function$;

comment on function agent.end_closed_runs(uuid[], integer[], text[]) is
    'Ends runs of closed accounts that no worker executes.';
