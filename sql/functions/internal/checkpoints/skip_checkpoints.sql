-- SPDX-License-Identifier: Apache-2.0
-- Follows the parents of a checkpoint of the root graph and skips those that the given run, or a run that is being
-- deleted, saved: up to p_steps in a call. A loop, since a step of a recursive query costs three times as much.
-- p_cursor: null, or the cursor of the previous call. If its checkpoint was deleted since, or it belongs to a walk from
-- another checkpoint, it is ignored: the walk starts again.
-- Returns: checkpoint_id: the given one, or its nearest ancestor that another run saved; null for none;
--          cursor: at most 140 bytes, where the next call continues (checkpoint_id is then null), else null;
--          steps: number of checkpoints that were skipped.
-- Locks:   none. The thread may change between two calls: the remaining ancestors of a checkpoint keep their order.
create or replace function agent.skip_checkpoints(
    p_deployment_id uuid,
    p_thread_id uuid,
    p_run_id uuid,
    p_checkpoint_id uuid,
    p_cursor text,
    p_steps bigint,
    out checkpoint_id uuid,
    out cursor text,
    out steps bigint
)
language plpgsql stable security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $function$
declare
    v_cursor  text[] := string_to_array(p_cursor, '.');
    v_skipped uuid[] := p_run_id || array(
        select s.run_id
          from agent.find_swept_runs(p_deployment_id, p_thread_id) s);
    v_id      uuid := p_checkpoint_id;
    v_run_id  uuid;
    v_parent  uuid;
    -- A runner may send a checkpoint that is its own ancestor. The cycle is detected as by Brent: each one is compared
    -- with an earlier one, which is replaced at doubled distances; the cursor has both.
    v_earlier uuid;
    v_before  bigint := 0;
    v_until   bigint := 1;
begin
    if v_cursor[1] = p_checkpoint_id::text and exists (
        select from agent.checkpoints x
         where x.deployment_id = p_deployment_id
           and x.thread_id = p_thread_id
           and x.checkpoint_ns = ''
           and x.checkpoint_id = v_cursor[2]::uuid)
    then
        v_id := v_cursor[2];
        v_earlier := nullif(v_cursor[3], '');
        v_before := v_cursor[4];
        while v_until < v_before
        loop
            v_until := 2 * v_until;
        end loop;
    end if;
    for v_step in 0 .. p_steps::integer
    loop
        steps := v_step;
        select x.run_id, x.parent_checkpoint_id into v_run_id, v_parent
          from agent.checkpoints x
         where x.deployment_id = p_deployment_id
           and x.thread_id = p_thread_id
           and x.checkpoint_ns = ''
           and x.checkpoint_id = v_id;
        if not found or v_id = v_earlier then
            return;
        elsif (v_run_id = any (v_skipped)) is not true then
            checkpoint_id := v_id;
            return;
        elsif v_step = p_steps then
            cursor := array_to_string(
                array[p_checkpoint_id, v_id, v_earlier]::text[] || (v_before + p_steps)::text, '.', '');
            return;
        elsif v_before + v_step = v_until then
            v_until := 2 * v_until;
            v_earlier := v_id;
        end if;
        v_id := v_parent;
    end loop;
end
$function$;

comment on function agent.skip_checkpoints(uuid, uuid, uuid, uuid, text, bigint) is
    'The nearest ancestor of a checkpoint that another run saved.';
