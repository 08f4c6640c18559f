-- SPDX-License-Identifier: Apache-2.0
-- DELETE /assistants/{assistant_id}, with its versions. Its runs continue: they have a copy of its settings. With
-- p_with_threads first the threads whose last run is of this assistant, with all their runs: for 100 ms, or up to
-- one with an unfinished run or of which a piece is left. Then the caller calls again with the returned body as
-- p_before, in another transaction. Threads that are created after the first call stay.
-- Returns: ok; waiting: call again; assistant_not_found, assistant_is_system. changed: the deleted threads and
--          their unfinished runs, null for none.
-- Locks:   threads in the order of their keys, each with its rows; the assistant in a transaction without threads.
create or replace function agent.delete_assistant(
    p_deployment_id uuid,
    p_assistant_id uuid,
    p_with_threads boolean,
    p_before timestamptz,
    out code text,
    out body text,
    out changed text
)
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set enable_sort = off set plan_cache_mode = force_generic_plan
as $function$
declare
    v_end       timestamptz := clock_timestamp() + interval '100 ms';
    v_before    timestamptz := coalesce(p_before, agent.now());
    v_is_system boolean;
    v_found     boolean := false;
    v_changed   text;
    v_more      text;
    v_thread_id uuid;
begin
    select a.is_system into v_is_system
      from agent.assistants a
     where a.deployment_id = p_deployment_id
       and a.assistant_id = p_assistant_id;
    if not found then
        code := 'assistant_not_found';
        return;
    elsif v_is_system then
        code := 'assistant_is_system';
        return;
    end if;
    if p_with_threads then
        for v_thread_id in
            select t.thread_id
              from agent.threads t
             where t.deployment_id = p_deployment_id
               and t.assistant_id = p_assistant_id
               and t.created_at <= v_before
             order by t.thread_id
        loop
            -- The loop reads ahead: another client may have deleted the thread and created it again.
            perform from agent.threads t
              where t.deployment_id = p_deployment_id
                and t.thread_id = v_thread_id
                and t.created_at <= v_before
                for update;
            continue when not found;
            select d.changed, d.body into v_changed, v_more
              from agent.delete_thread(p_deployment_id, v_thread_id) d;
            v_found := true;
            changed := concat_ws(' ', changed, v_changed);
            -- Queue rows were locked: a thread that is locked after them could be part of a deadlock.
            exit when v_changed like '% %' or v_more is not null or clock_timestamp() > v_end;
        end loop;
        if v_found then
            changed := nullif(changed, '');
            code := 'waiting';
            body := v_before;
            return;
        end if;
    end if;
    delete from agent.assistants a
     where a.deployment_id = p_deployment_id
       and a.assistant_id = p_assistant_id
       and not a.is_system;
    code := case when found then 'ok' else 'assistant_not_found' end;
end
$function$;

comment on function agent.delete_assistant(uuid, uuid, boolean, timestamptz) is
    'DELETE /assistants/{assistant_id}.';
