-- SPDX-License-Identifier: Apache-2.0
-- The checkpoint that an update has saved: the last one, of the graph whose state it changes.
-- Returns: its id; null for none, and for any other call.
-- Locks:   none; the caller holds the thread.
create or replace function agent.find_call_checkpoint(p_call agent.run_queue) returns uuid
language plpgsql stable parallel safe security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_hashjoin = off
set plan_cache_mode = force_generic_plan
as $function$
declare
    v_ns text;
begin
    select c.checkpoint_ns into v_ns
      from agent.calls c
     where c.call_id = (p_call).run_id
       and c.deployment_id is not distinct from (p_call).deployment_id
       and c.op = 'update';
    if v_ns = '' then
        return (
            select t.head_checkpoint_id
              from agent.threads t
             where t.deployment_id = (p_call).deployment_id
               and t.thread_id = (p_call).thread_id
               and t.head_run_id = (p_call).run_id);
    end if;
    return (
        select x.checkpoint_id
          from agent.checkpoints x
         -- Conditions that match only one index, as in agent.find_run_checkpoints.
         where x.run_id = (p_call).run_id
           and uuid_hash_extended(x.thread_id, 0) = uuid_hash_extended((p_call).thread_id, 0)
           and x.deployment_id is not distinct from (p_call).deployment_id
           and x.thread_id is not distinct from (p_call).thread_id
           and x.checkpoint_ns is not distinct from v_ns
         order by x.checkpoint_id desc
         limit 1);
end
$function$;

comment on function agent.find_call_checkpoint(agent.run_queue) is 'The checkpoint that an update has saved.';
