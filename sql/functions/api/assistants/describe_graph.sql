-- SPDX-License-Identifier: Apache-2.0
-- GET /assistants/{assistant_id}/schemas, /graph and /subgraphs. If the report of a runner has the answer, it is
-- returned at once. Otherwise a call asks the graph's code, made with the assistant's settings. The result of a call
-- serves equal requests about this version of the assistant for 50 seconds, and concurrent equal requests wait for one
-- call.
-- p_call_id: of the call; p_seconds: how long the request waits for it (agent.end_call). p_arguments: those of the call
-- (describe in PROTOCOL.md).
-- Returns: ok with the response; or without body, and changed: the call, twice, whose result agent.join_call returns
--          for a thread of the same id, at once for a finished one with more than 256 KB; assistant_not_found;
--          graph_not_found when no supervisor executes the graph.
-- Locks:   none.
create or replace function agent.describe_graph(
    p_deployment_id uuid,
    p_assistant_id uuid,
    p_call_id uuid,
    p_seconds double precision,
    p_arguments json,
    out code text,
    out body text,
    out changed text
)
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set plan_cache_mode = force_generic_plan
as $function$
declare
    c_bytes     constant integer := 262144;
    v_call_id   uuid;
    v_now       timestamptz := agent.now();
    v_what      text := p_arguments ->> 'what';
    v_is_deep   boolean := coalesce(p_arguments ->> 'xray', 'false') not in ('false', '0');
    v_assistant agent.assistants;
    v_graph     agent.graphs;
    v_key       text;
begin
    select a.* into v_assistant
      from agent.assistants a
     where a.deployment_id = p_deployment_id
       and a.assistant_id = p_assistant_id;
    if not found then
        code := 'assistant_not_found';
        return;
    end if;
    select g.* into v_graph
      from agent.graphs g
     where g.deployment_id = p_deployment_id
       and g.graph_id = v_assistant.graph_id;
    -- A graph that could not be loaded has no code to ask.
    if not found or v_graph.error is not null
       or v_what = 'subgraphs' and not v_graph.has_subgraphs
       or v_what = 'schemas' and not v_graph.factory
       or v_what = 'graph' and not v_graph.factory and not (v_is_deep and v_graph.has_subgraphs)
    then
        code := 'ok';
        body := case v_what
            when 'schemas' then agent.render_schemas(v_assistant.graph_id, v_graph.schemas)
            when 'graph' then coalesce(v_graph.drawing, '{"nodes":[],"edges":[]}')
            else '{}'
        end;
        return;
    end if;

    -- Another assistant may have the id and the version of one that was deleted.
    v_key := concat_ws(
        ' ', p_assistant_id, v_assistant.version, v_assistant.created_at, v_assistant.graph_id, p_arguments::jsonb);
    select c.call_id, c.body into v_call_id, body
      from agent.calls c
     where c.description_key = md5(v_key)
       and c.deployment_id is not distinct from p_deployment_id
       and (c.code = 'ok' or c.finished_at is null and c.deadline_at > v_now)
       and c.created_at >= v_graph.reported_at
       -- Before agent.sweep_calls deletes it.
       and c.created_at > v_now - interval '50 seconds'
     limit 1;
    if found then
        code := 'ok';
        if body is null or octet_length(body) > c_bytes then
            body := null;
            changed := v_call_id || ' ' || v_call_id;
        end if;
        return;
    end if;
    if not agent.is_graph_served(p_deployment_id, v_assistant.graph_id) then
        code := 'graph_not_found';
        return;
    end if;

    insert into agent.calls (
        deployment_id, call_id, thread_id, graph_id, op, arguments, config, context, description_key, created_at,
        deadline_at)
    values (
        p_deployment_id, p_call_id, p_call_id, v_assistant.graph_id, 'describe', p_arguments,
        v_assistant.config || jsonb_build_object(
            'metadata', v_assistant.metadata,
            'configurable', agent.drop_identity(v_assistant.config -> 'configurable') || jsonb_build_object(
                'graph_id', v_assistant.graph_id, 'assistant_id', p_assistant_id)),
        v_assistant.context, md5(v_key), v_now, v_now + p_seconds * interval '1 second');
    insert into agent.run_queue (
        deployment_id, run_id, thread_id, thread_seq, graph_id, state, ready_seq, events_bucket, request_bytes, op)
    values (
        p_deployment_id, p_call_id, p_call_id, 0, v_assistant.graph_id, 'ready', nextval('agent.run_ready_seq'),
        (v_now at time zone 'UTC')::date,
        octet_length(p_arguments::text) + octet_length(v_assistant.config::text)
        + octet_length(v_assistant.context::text) + octet_length(v_assistant.metadata::text), 'describe');
    code := 'ok';
    changed := p_call_id || ' ' || p_call_id;
end
$function$;

comment on function agent.describe_graph(uuid, uuid, uuid, double precision, json) is
    'GET /assistants/{assistant_id}/schemas, /graph and /subgraphs.';
