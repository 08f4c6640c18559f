-- SPDX-License-Identifier: Apache-2.0
-- POST /threads with supersteps: creates a thread whose state a call of its graph makes. p_call_id, p_user_id,
-- p_seconds: as in agent.update_state; p_if_exists, p_ttl: as in agent.create_thread. A thread that exists stays as it
-- is. When the call fails the thread is deleted, unless a run was created on it (agent.finish_calls).
-- Returns: ok, changed: the thread and the call, whose result, the thread record, agent.join_call returns; without
--          changed, body: the record of a thread that exists; thread_exists; no_graph; graph_not_found;
--          limit_exceeded.
-- Locks:   the new rows, then one row of the count of an account with a limit.
create or replace function agent.create_thread_state(
    p_deployment_id uuid,
    p_thread_id uuid,
    p_call_id uuid,
    p_user_id text,
    p_if_exists text,
    p_seconds double precision,
    p_request json,
    p_ttl interval default null,
    out code text,
    out body text,
    out changed text
)
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set plan_cache_mode = force_generic_plan
as $function$
declare
    v_graph_id text := p_request #>> '{metadata,graph_id}';
    v_thread   agent.threads;
begin
    select c.code, c.body into code, body
      from agent.create_thread(p_deployment_id, p_thread_id, 'raise', p_request, p_ttl) c;
    if code <> 'ok' then
        select c.code, c.body into code, body
          from agent.create_thread(p_deployment_id, p_thread_id, p_if_exists, p_request, p_ttl) c;
        return;
    end if;
    body := null;
    if v_graph_id is null then
        code := 'no_graph';
        body := format('Thread %s has no graph ID: supersteps need graph_id in its metadata.', p_thread_id);
    elsif not agent.is_graph_served(p_deployment_id, v_graph_id) then
        code := 'graph_not_found';
    elsif exists (select from agent.account_limits) then
        body := agent.check_limit(p_deployment_id, 'queued_runs', 1);
        code := case when body is null then 'ok' else 'limit_exceeded' end;
    end if;
    if code <> 'ok' then
        delete from agent.thread_expiries e
         where e.deployment_id = p_deployment_id
           and e.thread_id = p_thread_id;
        delete from agent.threads t
         where t.deployment_id = p_deployment_id
           and t.thread_id = p_thread_id;
        if exists (select from agent.account_counts) then
            perform agent.change_count(p_deployment_id, 'threads', -1);
        end if;
        return;
    end if;
    update agent.threads t
       set status = 'busy',
           active_run_id = p_call_id,
           run_seq = 1
     where t.deployment_id = p_deployment_id
       and t.thread_id = p_thread_id
    returning t.* into v_thread;
    perform agent.enqueue_update(
        v_thread, p_call_id, p_user_id, p_seconds, p_request -> 'supersteps', null, null);
    changed := p_thread_id || ' ' || p_call_id;
end
$function$;

comment on function agent.create_thread_state(uuid, uuid, uuid, text, text, double precision, json, interval) is
    'POST /threads with supersteps.';
