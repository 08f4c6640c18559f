-- SPDX-License-Identifier: Apache-2.0
-- Makes delayed runs claimable that are due, up to 100: they get numbers above every low-water mark of a worker.
-- Returns: nothing.
-- Locks:   their queue rows, skipping locked ones.
create or replace function agent.promote_delayed_runs(p_now timestamptz) returns void
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $function$
begin
    update agent.run_queue q
       set not_before = null,
           ready_seq = nextval('agent.run_ready_seq')
     where q.ctid = any (array(
            select d.ctid
              from agent.run_queue d
             where d.state = 'ready'
               and d.not_before is not null
               and d.not_before <= p_now
             order by d.not_before
             limit 100
               for no key update skip locked));
end
$function$;

comment on function agent.promote_delayed_runs(timestamptz) is 'Makes delayed runs claimable that are due.';
