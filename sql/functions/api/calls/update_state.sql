-- SPDX-License-Identifier: Apache-2.0
-- POST /threads/{thread_id}/state: asks the thread's graph to apply values to its state. The call is the thread's
-- active one until it ends, as a run would be. p_seconds: how long the request waits for it (agent.end_call).
-- Returns: ok, changed: the thread and the call, whose result agent.join_call returns; thread_not_found; thread_busy;
--          no_graph when the thread never had one; graph_not_found when no supervisor executes it;
--          checkpoint_not_found; limit_exceeded.
-- Locks:   the rows of a new count, then the thread, the new rows, and one row of the count of an account with a limit.
create or replace function agent.update_state(
    p_deployment_id uuid,
    p_thread_id uuid,
    p_call_id uuid,
    p_user_id text,
    p_seconds double precision,
    p_request json,
    out code text,
    out body text,
    out changed text
)
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set plan_cache_mode = force_generic_plan
as $function$
declare
    v_now        timestamptz := agent.now();
    v_start      record;
    v_last       record;
    v_thread     agent.threads;
    v_before     text;
    v_graph_id   text;
begin
    if exists (select from agent.account_limits) then
        body := coalesce(
            agent.check_stored_bytes(p_deployment_id), agent.check_limit(p_deployment_id, 'queued_runs', 1));
        if body is not null then
            code := 'limit_exceeded';
            return;
        end if;
    end if;
    select t.* into v_thread
      from agent.threads t
     where t.deployment_id = p_deployment_id
       and t.thread_id = p_thread_id
       and not t.is_deleted;
    v_before := v_thread.status;
    v_start := agent.resolve_checkpoint(
        p_deployment_id, p_thread_id, (p_request ->> 'checkpoint_id')::uuid, (p_request -> 'checkpoint')::jsonb, null);
    v_graph_id := v_thread.metadata ->> 'graph_id';
    if not found then
        code := 'thread_not_found';
    elsif v_thread.status = 'busy' then
        code := 'thread_busy';
        body := 'Thread is busy';
    elsif v_graph_id is null then
        code := 'no_graph';
        body := format(
            'Thread %s has no graph ID: create a run first, or set graph_id in its metadata.', p_thread_id);
    elsif not agent.is_graph_served(p_deployment_id, v_graph_id) then
        code := 'graph_not_found';
    elsif not v_start.is_found then
        code := 'checkpoint_not_found';
    end if;
    if code is not null then
        return;
    end if;

    -- One statement locks and checks, as in agent.create_run.
    update agent.threads t
       set status = 'busy',
           active_run_id = p_call_id,
           -- Its own, so that what it writes stays apart from the writes of runs (agent.checkpoint_writes).
           run_seq = t.run_seq + 1,
           updated_at = v_now
     where t.deployment_id = p_deployment_id
       and t.thread_id = p_thread_id
       and t.status = v_before
       and not t.is_deleted
    returning t.* into v_thread;
    if not found then
        perform from agent.threads t
          where t.deployment_id = p_deployment_id
            and t.thread_id = p_thread_id;
        code := case when found then 'thread_busy' else 'thread_not_found' end;
        body := case when found then 'Thread is busy' end;
        return;
    end if;

    if (v_start.place).checkpoint_ns <> '' then
        -- Another update may have saved the last one of the namespace before this one held the thread.
        v_last := agent.resolve_checkpoint(
            p_deployment_id, p_thread_id, (p_request ->> 'checkpoint_id')::uuid, (p_request -> 'checkpoint')::jsonb,
            null);
        if v_last.is_found then
            v_start := v_last;
        end if;
    end if;
    perform agent.enqueue_update(
        v_thread, p_call_id, p_user_id, p_seconds,
        json_build_array(json_build_object('updates', json_build_array(json_build_object(
            'values', p_request -> 'values', 'as_node', p_request -> 'as_node')))),
        v_start.place, v_before);
    code := 'ok';
    changed := p_thread_id || ' ' || p_call_id;
end
$function$;

comment on function agent.update_state(uuid, uuid, uuid, text, double precision, json) is
    'POST /threads/{thread_id}/state.';
