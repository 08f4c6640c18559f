-- SPDX-License-Identifier: Apache-2.0
-- Where a reference to a checkpoint leads once the checkpoints of a run are gone.
-- Returns: the nearest checkpoint, going up from the given one, that the run has not saved; null for none.
-- Locks:   none.
create or replace function agent.skip_checkpoints(
    p_account_id uuid,
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
            -- Not all: a runner may say that a checkpoint follows itself.
            union
            select c.parent_checkpoint_id
              from up
              join agent.checkpoints c
                on c.account_id = p_account_id
               and c.thread_id = p_thread_id
               and c.checkpoint_id = up.checkpoint_id
             where c.run_id = p_run_id
        )
        select c.checkpoint_id
          from up
          join agent.checkpoints c
            on c.account_id = p_account_id
           and c.thread_id = p_thread_id
           and c.checkpoint_id = up.checkpoint_id
         where c.run_id <> p_run_id);
end
$function$;

comment on function agent.skip_checkpoints(uuid, uuid, uuid, uuid) is
    'The nearest checkpoint above one of a run that the run has not saved.';
