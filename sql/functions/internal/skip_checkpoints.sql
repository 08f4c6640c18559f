-- SPDX-License-Identifier: Apache-2.0
-- Follows the parents of a checkpoint of the root graph past those that a run saved.
-- Returns: the given checkpoint, or its nearest ancestor that another run saved; null for none.
-- Locks:   none.
create or replace function agent.skip_checkpoints(
    p_deployment_id uuid,
    p_thread_id uuid,
    p_run_id uuid,
    p_checkpoint_id uuid
) returns uuid
language plpgsql stable security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_hashjoin = off
set enable_mergejoin = off
set plan_cache_mode = force_generic_plan
as $function$
begin
    return (
        with recursive up as (
            select p_checkpoint_id as checkpoint_id
            -- Not "union all": a runner may send a checkpoint that is its own ancestor.
            union
            select c.parent_checkpoint_id
              from up
             cross join lateral (
                    select x.parent_checkpoint_id, x.run_id
                      from agent.checkpoints x
                     where x.deployment_id = p_deployment_id
                       and x.thread_id = p_thread_id
                       and x.checkpoint_ns = ''
                       and x.checkpoint_id = up.checkpoint_id
                     limit 1
                   ) c
             where c.run_id = p_run_id
        )
        select up.checkpoint_id
          from up
         cross join lateral (
                select x.run_id
                  from agent.checkpoints x
                 where x.deployment_id = p_deployment_id
                   and x.thread_id = p_thread_id
                   and x.checkpoint_ns = ''
                   and x.checkpoint_id = up.checkpoint_id
                 limit 1
               ) c
         where c.run_id is distinct from p_run_id);
end
$function$;

comment on function agent.skip_checkpoints(uuid, uuid, uuid, uuid) is
    'The nearest ancestor of a checkpoint that another run saved.';
