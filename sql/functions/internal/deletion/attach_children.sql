-- SPDX-License-Identifier: Apache-2.0
-- Attaches some children of a checkpoint (or of a snapshot) that is to be deleted to its parent. agent.release_items
-- later finds the elements that they inherit, since they are then children of the ancestor that it reads. Until the
-- checkpoint is deleted, no other run of the thread is deleted: is_attaching of agent.run_sweeps.
-- p_run_id: the run that saved the checkpoint. p_parent_id: null for none. A runner may send a checkpoint that is its
-- own parent; no checkpoint becomes its own parent here.
-- p_count: the maximum number of children.
-- Returns: nothing.
-- Locks:   the caller holds the thread.
create or replace function agent.attach_children(
    p_deployment_id uuid,
    p_thread_id uuid,
    p_is_snapshot boolean,
    p_run_id uuid,
    p_checkpoint_ns text,
    p_checkpoint_id uuid,
    p_parent_id uuid,
    p_count bigint
) returns void
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_hashjoin = off
set enable_mergejoin = off set plan_cache_mode = force_generic_plan
as $function$
declare
    v_rows    tid[];
    v_parents uuid[];
begin
    insert into agent.run_sweeps (deployment_id, thread_id, run_id, is_attaching)
    values (p_deployment_id, p_thread_id, p_run_id, true)
        on conflict (deployment_id, thread_id, run_id) do update
       set is_attaching = true;
    select array_agg(c.row_id), array_agg(nullif(nullif(p_parent_id, p_checkpoint_id), c.checkpoint_id))
      into v_rows, v_parents
      from (
            select x.row_id, x.checkpoint_id
              from agent.find_children(
                       p_deployment_id, p_thread_id, p_is_snapshot, p_checkpoint_ns, p_checkpoint_id) x
             limit p_count
           ) c;
    perform agent.set_parents(p_is_snapshot, v_rows, v_parents);
end
$function$;

comment on function agent.attach_children(uuid, uuid, boolean, uuid, text, uuid, uuid, bigint) is
    'Attaches children of a checkpoint to its parent.';
