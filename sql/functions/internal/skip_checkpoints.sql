-- SPDX-License-Identifier: Apache-2.0
-- Follows the parents of a checkpoint of the root graph past those that a run, or one that is being deleted, saved. A
-- loop, since a step of a recursive query costs three times as much.
-- Returns: the given checkpoint, or its nearest ancestor that another run saved; null for none.
-- Locks:   none.
create or replace function agent.skip_checkpoints(
    p_deployment_id uuid,
    p_thread_id uuid,
    p_run_id uuid,
    p_checkpoint_id uuid
) returns uuid
language plpgsql stable security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $function$
declare
    v_skipped uuid[] := p_run_id || array(
        select s.run_id
          from agent.find_swept_runs(p_deployment_id, p_thread_id) s);
    v_id      uuid := p_checkpoint_id;
    v_run_id  uuid;
    v_parent  uuid;
    -- A runner may send a checkpoint that is its own ancestor: an earlier one is compared with, at growing distances.
    v_earlier uuid;
    v_steps   integer := 0;
    v_until   integer := 1;
begin
    loop
        select x.run_id, x.parent_checkpoint_id into v_run_id, v_parent
          from agent.checkpoints x
         where x.deployment_id = p_deployment_id
           and x.thread_id = p_thread_id
           and x.checkpoint_ns = ''
           and x.checkpoint_id = v_id;
        if not found or v_id = v_earlier then
            return null;
        elsif (v_run_id = any (v_skipped)) is not true then
            return v_id;
        end if;
        v_steps := v_steps + 1;
        if v_steps = v_until then
            v_until := 2 * v_until;
            v_earlier := v_id;
        end if;
        v_id := v_parent;
    end loop;
end
$function$;

comment on function agent.skip_checkpoints(uuid, uuid, uuid, uuid) is
    'The nearest ancestor of a checkpoint that another run saved.';
