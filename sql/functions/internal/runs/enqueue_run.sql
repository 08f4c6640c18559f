-- SPDX-License-Identifier: Apache-2.0
-- Inserts the record and the queue row of a new run: ready, or blocked by an earlier run of the thread.
-- p_headers: members of config.configurable over those of the request, under the identifiers; null for none. They
-- are the server's: headers that it selects, and the user that it has authenticated.
-- Returns: the run record of the API.
-- Locks:   the caller holds the thread; takes the new rows, and one of the count of an account with a limit.
create or replace function agent.enqueue_run(
    p_thread agent.threads,
    p_assistant agent.assistants,
    p_run_id uuid,
    p_strategy text,
    p_user_id text,
    p_idempotency_key text,
    p_request_hash text,
    p_feedback_url text,
    p_place agent.start_place,
    p_request agent.run_request,
    p_headers jsonb
) returns json
language plpgsql volatile security invoker
-- No SET clause: it is called for each run, by functions that have them.
as $function$
declare
    v_now    timestamptz := agent.now();
    v_bucket date := (v_now at time zone 'UTC')::date;
    v_active boolean := p_thread.active_run_id = p_run_id;
    v_body   json;
begin
    insert into agent.runs as r (
        deployment_id, run_id, thread_id, thread_seq, assistant_id, graph_id, multitask_strategy,
        metadata, input, command, config, context, webhook, stream_mode, stream_subgraphs,
        stream_resumable, feedback_keys, feedback, interrupt_before, interrupt_after, durability,
        strict_resume, start_checkpoint_id, start_map, events_bucket, idempotency_key, request_hash, temporary,
        created_at, updated_at)
    values (
        p_thread.deployment_id, p_run_id, p_thread.thread_id, p_thread.run_seq,
        p_assistant.assistant_id, p_assistant.graph_id, p_strategy,
        coalesce(p_request.metadata, '{}'), p_request.input, agent.pick_command(p_request.command),
        agent.merge_config(
            p_assistant.config, p_request.config,
            p_assistant.metadata || p_thread.metadata,
            p_request.metadata,
            coalesce(p_headers, '{}') - array['user_id', 'checkpoint_ns', 'checkpoint_map'] || jsonb_build_object(
                'run_id', p_run_id,
                'graph_id', p_assistant.graph_id,
                'thread_id', p_thread.thread_id,
                'assistant_id', p_assistant.assistant_id,
                'checkpoint_id', p_place.checkpoint_id)
            || agent.render_place(p_place)
            -- Without a user the client may name one: applications keep what they remember by it.
            || case when p_user_id = '' then '{}' else jsonb_build_object('user_id', p_user_id) end),
        agent.merge_context(p_assistant.context, p_request.context), p_request.webhook,
        case
            when p_request.stream_mode is null then '["values"]'
            when json_typeof(p_request.stream_mode) = 'array' then p_request.stream_mode
            else json_build_array(p_request.stream_mode)
        end,
        coalesce(p_request.stream_subgraphs, false), coalesce(p_request.stream_resumable, false),
        p_request.feedback_keys,
        agent.compose_feedback(p_feedback_url, p_run_id, p_request.feedback_keys),
        p_request.interrupt_before, p_request.interrupt_after,
        coalesce(
            p_request.durability,
            case p_request.checkpoint_during when true then 'async' when false then 'exit' end),
        coalesce(p_request.strict_resume, false), p_place.root_id, p_place.checkpoint_map, v_bucket, p_idempotency_key,
        p_request_hash, p_thread.temporary, v_now, v_now)
    returning agent.render_run(r) into v_body;

    insert into agent.run_queue (
        deployment_id, run_id, thread_id, thread_seq, graph_id, state, ready_seq, not_before,
        events_bucket, base_checkpoint_id, request_bytes)
    values (
        p_thread.deployment_id, p_run_id, p_thread.thread_id, p_thread.run_seq, p_assistant.graph_id,
        case when v_active then 'ready' else 'blocked' end,
        case when v_active then nextval('agent.run_ready_seq') end,
        case when p_request.after_seconds > 0
             then v_now + p_request.after_seconds * interval '1 second' end,
        v_bucket, p_thread.head_checkpoint_id,
        coalesce(octet_length(p_request.input::text), 0)
            + coalesce(octet_length(p_request.command::text), 0)
            + coalesce(octet_length(p_request.config::text), 0)
            + coalesce(octet_length(p_request.context::text), 0)
            + coalesce(octet_length(p_place.given_map::text), 0)
            + coalesce(octet_length(p_place.checkpoint_map::text), 0)
            + coalesce(octet_length(p_headers::text), 0)
            + agent.settings_bytes(p_assistant));
    -- Not in the function: without limits its call would cost more than what it does.
    if exists (select from agent.account_counts) then
        perform agent.change_count(p_thread.deployment_id, 'queued_runs', 1);
    end if;
    return v_body;
end
$function$;

comment on function agent.enqueue_run(
    agent.threads, agent.assistants, uuid, text, text, text, text, text, agent.start_place, agent.run_request, jsonb) is
    'Inserts the record and the queue row of a new run.';
