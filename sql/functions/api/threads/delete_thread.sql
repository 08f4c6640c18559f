-- SPDX-License-Identifier: Apache-2.0
-- DELETE /threads/{thread_id}, with everything that belongs to it but usage, in pieces of agent.deletion_bytes():
-- call again, each time in a transaction of its own, until body is null. The worker of an executing run finds no
-- queue row and is fenced. After the first piece the thread does not exist for clients, and
-- agent.expire_threads completes the deletion if the caller does not; until then its id is taken. Events beyond a
-- piece are deleted by agent.sweep_events; without their runs they cannot be read.
-- p_continued: not the first call; a thread that does not exist then was deleted, and one that is not being deleted
-- was created again after that.
-- Returns: ok, changed: the thread and its unfinished runs; body: more when something is left, else null;
--          thread_not_found.
-- Bound:   37 bytes for each of 501 runs. Held by `limit c_queued`.
-- Locks:   the thread, then its queue rows, then its records; rows of the counts of an account with a limit.
create or replace function agent.delete_thread(
    p_deployment_id uuid,
    p_thread_id uuid,
    p_continued boolean default false,
    out code text,
    out body text,
    out changed text
)
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set enable_sort = off set plan_cache_mode = force_generic_plan
as $function$
declare
    c_queued  constant integer := 500;
    v_now     timestamptz := agent.now();
    v_counts  boolean := exists (select from agent.account_counts);
    v_active  uuid;
    v_deleted boolean;
    v_ended   text;
    v_gone    agent.run_queue[];
    v_left    bigint := agent.deletion_bytes();
begin
    select t.active_run_id, t.is_deleted into v_active, v_deleted
      from agent.threads t
     where t.deployment_id = p_deployment_id
       and t.thread_id = p_thread_id
       for update;
    if not found or p_continued and not v_deleted then
        code := case when p_continued then 'ok' else 'thread_not_found' end;
        return;
    end if;

    -- Excludes a claim, which does not lock the thread: the deletion below sees the row that it committed. The
    -- deletion itself may not wait, since PostgreSQL then finds no row with that ctid.
    perform from agent.run_queue q
      where q.run_id = v_active
        and q.deployment_id is not distinct from p_deployment_id
        for update;
    with ended as (
        delete from agent.run_queue q
         where q.ctid = any (array(
                select x.ctid
                  from agent.run_queue x
                 where x.run_id = v_active
                   and x.deployment_id is not distinct from p_deployment_id)
            || array(
                select b.ctid
                  from agent.run_queue b
                 where b.deployment_id = p_deployment_id
                   and b.thread_id = p_thread_id
                   and b.state = 'blocked'
                 order by b.thread_seq
                 limit c_queued))
        returning q as lease
    )
    select string_agg((e.lease).run_id::text, ' '), case when count(*) >= c_queued then 0 else v_left end,
           array_agg(e.lease)
      into v_ended, v_left, v_gone
      from ended e;
    if v_counts then
        perform agent.count_ended_runs(v_gone);
    end if;
    code := 'ok';
    changed := concat_ws(' ', p_thread_id, v_ended);

    v_left := agent.delete_runs(p_deployment_id, p_thread_id, v_left);
    if v_left > 0 then
        v_left := agent.delete_state(p_deployment_id, p_thread_id, v_left);
    end if;
    if v_left <= 0 then
        body := 'more';
        insert into agent.thread_expiries (deployment_id, thread_id, expires_at)
        values (p_deployment_id, p_thread_id, v_now)
            on conflict (deployment_id, thread_id) do update
           set expires_at = excluded.expires_at;
        update agent.threads t
           set status = 'idle',
               active_run_id = null,
               head_checkpoint_id = null,
               head_run_id = null,
               head_has_next = false,
               state_deletions = t.state_deletions + 1,
               is_deleted = true,
               updated_at = v_now
         where t.deployment_id = p_deployment_id
           and t.thread_id = p_thread_id;
        return;
    end if;
    delete from agent.thread_expiries e
     where e.deployment_id = p_deployment_id
       and e.thread_id = p_thread_id;
    delete from agent.threads t
     where t.deployment_id = p_deployment_id
       and t.thread_id = p_thread_id;
    if v_counts then
        perform agent.change_count(p_deployment_id, 'threads', -1);
    end if;
end
$function$;

comment on function agent.delete_thread(uuid, uuid, boolean) is 'DELETE /threads/{thread_id}.';
