-- SPDX-License-Identifier: Apache-2.0
-- POST /threads/{thread_id}/copy, in pieces: call again, each time in a transaction of its own, until body is null. The
-- copy has the head that the thread had at the first call, and the checkpoints before it, which are immutable, and
-- those of subgraphs of that time, and the ttl of the thread, which it does not lock. Until the last piece it cannot be
-- read; agent.sweep_copies deletes one that is not continued.
-- Where there are limits the first call copies nothing: only its commit lets other copies see that this one counts, and
-- a piece takes long enough for many more to begin.
-- p_copy_id: the id of the copy. p_continued: not the first call. p_changed_id: an earlier copy of the same request,
-- which ended with thread_changed; null: none. While it counts as a thread, until it is deleted, this one takes its
-- place: it is refused only if the account has more threads than its limit.
-- Returns: ok, body: more when something is left, else null; waiting: nothing was copied; a piece of the rows
--          that a deleted run has left was deleted instead, since they would end the copy: call again with the same
--          arguments; source_not_found; limit_exceeded: at the first call, or when the
--          account has stored as many bytes as it may since: it is given up (agent.abandon_copy);
--          thread_changed when a run or the thread was deleted during the copy, or it was not continued for two
--          minutes: it can begin again, with another id.
-- Locks:   the thread while something is left of a deleted run; the row of the copy in agent.thread_copies; for an
--          account with limits, at its begin one row of its count of threads, and last its measure.
create or replace function agent.copy_thread(
    p_deployment_id uuid,
    p_thread_id uuid,
    p_copy_id uuid,
    p_continued boolean,
    p_changed_id uuid,
    out code text,
    out body text
)
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $function$
declare
    -- As agent.copy_checkpoints and agent.copy_items count them: about 60 ms of work.
    c_bytes  constant bigint := 4000000;
    v_now        timestamptz := agent.now();
    v_has_limits boolean := exists (select from agent.account_limits);
    v_counted    integer;
    v_copy       agent.thread_copies;
    v_piece      record;
    v_swept      uuid;
    v_ttl        interval;
begin
    if p_continued then
        update agent.thread_copies c
           set expires_at = v_now + interval '2 minutes'
         where c.deployment_id = p_deployment_id
           and c.thread_id = p_copy_id
           and c.source_id = p_thread_id
           and c.expires_at > v_now
        returning c.* into v_copy;
    else
        select s.run_id into v_swept
          from agent.run_sweeps s
         where s.deployment_id = p_deployment_id
           and s.thread_id = p_thread_id
         limit 1;
        if found then
            perform from agent.threads t
              where t.deployment_id = p_deployment_id
                and t.thread_id = p_thread_id
                and not t.is_deleted
                for no key update;
            if found then
                perform agent.delete_run_state(p_deployment_id, p_thread_id, v_swept, agent.deletion_bytes());
                code := 'waiting';
                return;
            end if;
        end if;
        if v_has_limits then
            select count(*) into v_counted
              from agent.thread_copies c
             where c.deployment_id = p_deployment_id
               and c.thread_id = p_changed_id
               and c.source_id = p_thread_id;
            body := coalesce(
                agent.check_stored_bytes(p_deployment_id),
                agent.check_limit(p_deployment_id, 'threads', 1 - v_counted));
        end if;
        if body is not null then
            code := 'limit_exceeded';
            return;
        end if;
        v_copy := agent.begin_copy(p_deployment_id, p_thread_id, p_copy_id, v_now);
    end if;
    if v_copy.thread_id is null then
        code := case when p_continued then 'thread_changed' else 'source_not_found' end;
        return;
    end if;

    if v_has_limits and not p_continued then
        code := 'ok';
        body := 'more';
        return;
    end if;
    if v_has_limits then
        body := agent.check_stored_bytes(p_deployment_id);
        if body is not null then
            perform agent.abandon_copy(p_deployment_id, p_copy_id);
            code := 'limit_exceeded';
            return;
        end if;
    end if;
    v_piece := agent.copy_piece(v_copy, c_bytes);

    -- Checked last: a deletion that is not visible here was committed after everything above was read.
    select t.ttl into v_ttl
      from agent.threads t
     where t.deployment_id = p_deployment_id
       and t.thread_id = p_thread_id
       and t.created_at = v_copy.source_created_at
       and t.state_deletions = v_copy.state_deletions;
    if not found or v_piece.left_bytes is null then
        perform agent.abandon_copy(p_deployment_id, p_copy_id);
        code := 'thread_changed';
    else
        code := 'ok';
        if v_piece.left_bytes <= 0 then
            body := 'more';
        else
            v_piece.stored_bytes[6] := agent.finish_copy(v_copy, v_ttl, v_now);
        end if;
    end if;
    perform agent.add_stored_bytes(v_copy, v_piece.stored_bytes);
end
$function$;

comment on function agent.copy_thread(uuid, uuid, uuid, boolean, uuid) is 'POST /threads/{thread_id}/copy.';
