-- SPDX-License-Identifier: Apache-2.0
-- Strategy keep_latest of POST /threads/prune, for one thread, in pieces of agent.deletion_bytes(): call again, each
-- time in a transaction of its own and with the body of the previous call as p_cursor, until body is null. It keeps the
-- last checkpoint of each namespace (the head in the root graph) and the snapshot from which the library continues,
-- with the ancestors from which the library composes channels that are stored as writes: back to one that has their
-- values. The thread is consistent after each piece. Runs and their events stay, without the values of deleted
-- checkpoints. If the deletion of a run moves the head between two calls, pruning starts again.
-- Returns: ok, body: the cursor when something is left, else null; thread_not_found; thread_busy: it has an unfinished
--          run or call, which may need any of its checkpoints.
-- Locks:   the thread.
create or replace function agent.prune_thread(
    p_deployment_id uuid,
    p_thread_id uuid,
    p_cursor text default null,
    out code text,
    out body text
)
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $function$
declare
    v_left        bigint := agent.deletion_bytes();
    v_cursor      jsonb := p_cursor;
    v_is_snapshot boolean;
    v_place       jsonb;
    v_thread      agent.threads;
    v_swept       uuid;
    v_part        record;
begin
    select t.* into v_thread
      from agent.threads t
     where t.deployment_id = p_deployment_id
       and t.thread_id = p_thread_id
       and not t.is_deleted
       for no key update;
    if not found then
        code := 'thread_not_found';
        return;
    elsif v_thread.status = 'busy' then
        code := 'thread_busy';
        return;
    end if;

    code := 'ok';
    if (v_cursor ->> 'head')::uuid is distinct from v_thread.head_checkpoint_id then
        v_cursor := null;
    end if;
    v_is_snapshot := coalesce((v_cursor ->> 'is_snapshot')::boolean, false);
    v_place := v_cursor -> 'place';
    -- First the rows that deleted runs have left: none of them is to be kept.
    select s.run_id into v_swept
      from agent.run_sweeps s
     where s.deployment_id = p_deployment_id
       and s.thread_id = p_thread_id
     order by s.is_attaching desc
     limit 1;
    if found then
        perform agent.delete_run_state(p_deployment_id, p_thread_id, v_swept, v_left);
        body := coalesce(v_cursor, '{}');
        return;
    end if;

    update agent.threads t
       set state_deletions = t.state_deletions + 1
     where t.deployment_id = p_deployment_id
       and t.thread_id = p_thread_id;
    if not v_is_snapshot then
        v_part := agent.prune_state(
            p_deployment_id, p_thread_id, false, v_thread.head_checkpoint_id, v_place, v_left);
        v_left := v_part.bytes_left;
        v_place := v_part.place;
        v_is_snapshot := v_place is null;
    end if;
    if v_is_snapshot and v_left > 0 then
        v_part := agent.prune_state(
            p_deployment_id, p_thread_id, true, agent.find_last_snapshot(p_deployment_id, p_thread_id, ''), v_place,
            v_left);
        v_left := v_part.bytes_left;
        v_place := v_part.place;
        v_is_snapshot := v_place is not null;
    end if;
    if v_left > 0 then
        v_left := agent.delete_writes(p_deployment_id, p_thread_id, null, v_left);
    end if;
    if v_left > 0 then
        perform agent.delete_items(p_deployment_id, p_thread_id, v_left);
    end if;
    if v_is_snapshot or v_place is not null then
        body := jsonb_strip_nulls(jsonb_build_object(
            'is_snapshot', v_is_snapshot, 'place', v_place, 'head', v_thread.head_checkpoint_id));
    end if;
end
$function$;

comment on function agent.prune_thread(uuid, uuid, text) is 'POST /threads/prune, strategy keep_latest.';
