-- SPDX-License-Identifier: Apache-2.0
-- Gives checkpoints, or snapshots, other parents. p_rows: their row ids (ctid); p_parents: null for none.
-- Returns: nothing.
-- Locks:   the caller holds the thread.
create or replace function agent.set_parents(p_is_snapshot boolean, p_rows tid[], p_parents uuid[]) returns void
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_hashjoin = off
set enable_mergejoin = off set plan_cache_mode = force_generic_plan
as $function$
begin
    if p_is_snapshot then
        update agent.checkpoint_snapshots child
           set parent_checkpoint_id = u.parent_id
          from unnest(p_rows, p_parents) u (row_id, parent_id)
         where child.ctid = u.row_id;
    else
        update agent.checkpoints child
           set parent_checkpoint_id = u.parent_id
          from unnest(p_rows, p_parents) u (row_id, parent_id)
         where child.ctid = u.row_id;
    end if;
end
$function$;

comment on function agent.set_parents(boolean, tid[], uuid[]) is 'Gives checkpoints other parents.';
