-- SPDX-License-Identifier: Apache-2.0
-- Whether a call has saved all that it was to save before its end is known: it is an update of one superstep, which
-- has one checkpoint.
-- Returns: false also for any other call.
-- Locks:   none; the caller holds the thread.
create or replace function agent.is_saved_update(p_call agent.run_queue) returns boolean
language plpgsql stable parallel safe security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_hashjoin = off
set plan_cache_mode = force_generic_plan
as $function$
begin
    return exists (
        select
          from (
                select x.arguments
                  from agent.calls x
                 where x.call_id = (p_call).run_id
                   and x.deployment_id is not distinct from (p_call).deployment_id
                   and x.op = 'update'
                 limit 1
               ) c
         where agent.find_call_checkpoint(p_call) is not null
           and json_array_length(c.arguments -> 'supersteps') = 1);
end
$function$;

comment on function agent.is_saved_update(agent.run_queue) is
    'Whether a call has saved all that it was to save.';
