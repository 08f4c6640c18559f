-- SPDX-License-Identifier: Apache-2.0
-- Creates a thread that is busy with a new run. Members of the request that concern other runs have no
-- effect on a new thread; the server refuses those that name a checkpoint. p_ttl: of a thread that is not temporary.
-- Returns: the run record of the API.
-- Locks:   the new rows.
create or replace function agent.enqueue_stateless_run(
    p_deployment_id uuid,
    p_thread_id uuid,
    p_run_id uuid,
    p_assistant agent.assistants,
    p_user_id text,
    p_idempotency_key text,
    p_request_hash text,
    p_feedback_url text,
    p_request agent.run_request,
    p_ttl interval,
    p_headers jsonb
) returns json
language plpgsql volatile security invoker
set search_path = '' set jit = off set plan_cache_mode = force_generic_plan
as $function$
declare
    v_now    timestamptz := agent.now();
    v_thread agent.threads;
begin
    insert into agent.threads as t (
        deployment_id, thread_id, status, active_run_id, run_seq, assistant_id, metadata, temporary, ttl,
        created_at, updated_at)
    values (
        p_deployment_id, p_thread_id, 'busy', p_run_id, 1,
        case when not p_assistant.is_system then p_assistant.assistant_id end,
        jsonb_build_object(
            'graph_id', p_assistant.graph_id, 'assistant_id', p_assistant.assistant_id),
        p_request.on_completion is distinct from 'keep',
        case when p_request.on_completion = 'keep' then p_ttl end, v_now, v_now)
    returning t.* into v_thread;
    return agent.enqueue_run(
        v_thread, p_assistant, p_run_id, 'reject', p_user_id, p_idempotency_key, p_request_hash,
        p_feedback_url, null, p_request, p_headers);
end
$function$;

comment on function agent.enqueue_stateless_run(
    uuid, uuid, uuid, agent.assistants, text, text, text, text, agent.run_request, interval, jsonb) is
    'Creates a thread that is busy with a new run.';
