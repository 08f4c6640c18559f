-- SPDX-License-Identifier: Apache-2.0
-- POST /runs: a run on a new thread. The thread is temporary, unless on_completion of the request
-- is keep: it is deleted agent.expiry_delay() after the end of the run. p_ttl: of one that is kept, as in
-- agent.create_run; p_headers as there.
-- Returns: ok with the run record (of the stored run when the idempotency key is known);
--          assistant_not_found, graph_not_found, idempotency_mismatch, limit_exceeded; invalid_value when its metadata
--          and tags are too long.
-- Locks:   the idempotency key (advisory), then the new rows, then one row of each count of an account with limits.
create or replace function agent.create_stateless_run(
    p_deployment_id uuid,
    p_thread_id uuid,
    p_run_id uuid,
    p_assistant_id uuid,
    p_graph_id text,
    p_known_graph_ids text[],
    p_user_id text,
    p_idempotency_key text,
    p_request_hash text,
    p_request json,
    p_feedback_url text default null,
    p_ttl interval default null,
    p_headers jsonb default null,
    out code text,
    out body text
)
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set plan_cache_mode = force_generic_plan
as $function$
declare
    v_request   agent.run_request := json_populate_record(null::agent.run_request, p_request);
    v_assistant agent.assistants;
    v_counts    boolean;
begin
    if p_idempotency_key is not null then
        select s.code, s.body into code, body
          from agent.find_stored_run(p_deployment_id, null, p_idempotency_key, p_request_hash) s;
        if code is not null then
            return;
        end if;
    end if;

    v_assistant := agent.find_assistant(p_deployment_id, p_assistant_id, p_graph_id, p_known_graph_ids);
    if v_assistant.assistant_id is null then
        select r.code, r.body into code, body
          from agent.refuse_assistant(p_deployment_id, p_assistant_id, p_graph_id) r;
        return;
    end if;
    select c.code, c.body, c.counts_thread into code, body, v_counts
      -- Without metadata: of a thread that does not exist yet.
      from agent.check_new_run(v_assistant, null, v_request) c;
    if code is not null then
        return;
    end if;
    code := 'ok';
    body := agent.enqueue_stateless_run(
        p_deployment_id, p_thread_id, p_run_id, v_assistant, coalesce(p_user_id, ''),
        p_idempotency_key, p_request_hash, p_feedback_url, v_request, p_ttl, p_headers);
    if v_counts then
        perform agent.change_count(p_deployment_id, 'threads', 1);
    end if;
end
$function$;

comment on function agent.create_stateless_run(
    uuid, uuid, uuid, uuid, text, text[], text, text, text, json, text, interval, jsonb) is
    'POST /runs.';
