-- SPDX-License-Identifier: Apache-2.0
-- POST /threads/{thread_id}/runs. With strategy reject, a busy thread is found in a snapshot, without a lock:
-- a lock assigns a transaction id, and each rejection would then flush the log.
-- Returns: ok with the run record (of the stored run when the idempotency key is known);
--          thread_not_found, assistant_not_found, graph_not_found, checkpoint_not_found, thread_busy,
--          idempotency_mismatch, limit_exceeded; invalid_value when its metadata and tags are too long; waiting:
--          earlier runs of the thread were ended, others are left: call again, in another transaction, with body as
--          p_before (null at the first call). Runs that others create between these calls continue: they come before
--          the new one, which is created by the last call.
--          changed: the thread and the runs that this call ended, null for none.
-- p_ttl: of a thread that it creates, as in agent.create_thread; its time begins with the end of the run. p_headers:
-- members of config.configurable over those of the request.
-- Bound:   one run record, and 37 bytes for each of 101 runs.
--          Held by `then 100000 else 40000 end` in sql/functions/internal/runs/preempt_runs.sql and `select 4000000` in
--          sql/functions/inline/deletion/deletion_bytes.sql.
-- Locks:   the idempotency key (advisory), then the thread, then its queue rows and records, then one row of each count
--          of an account with limits.
create or replace function agent.create_run(
    p_deployment_id uuid,
    p_thread_id uuid,
    p_run_id uuid,
    p_assistant_id uuid,
    p_graph_id text,
    p_known_graph_ids text[],
    p_strategy text,
    p_user_id text,
    p_idempotency_key text,
    p_request_hash text,
    p_request json,
    p_feedback_url text default null,
    p_before bigint default null,
    p_ttl interval default null,
    p_headers jsonb default null,
    out code text,
    out body text,
    out changed text
)
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set plan_cache_mode = force_generic_plan
as $function$
declare
    v_request      agent.run_request := json_populate_record(null::agent.run_request, p_request);
    v_assistant    agent.assistants;
    v_of_assistant jsonb;
    v_thread       agent.threads;
    v_check        record;
    v_start        record;
    v_place        agent.start_place;
    v_preempted    record;
begin
    if p_idempotency_key is not null then
        select s.code, s.body into code, body
          from agent.find_stored_run(p_deployment_id, p_thread_id, p_idempotency_key, p_request_hash) s;
        if code is not null then
            return;
        end if;
    end if;

    select t.* into v_thread
      from agent.threads t
     where t.deployment_id = p_deployment_id
       and t.thread_id = p_thread_id;
    -- The id of a thread that is being deleted is free when its deletion has ended.
    if coalesce(v_thread.is_deleted, true) and v_request.if_not_exists is distinct from 'create' then
        code := 'thread_not_found';
        return;
    end if;
    if v_thread.is_deleted or (p_strategy = 'reject' and v_thread.status = 'busy') then
        code := 'thread_busy';
        return;
    end if;

    v_assistant := agent.find_assistant(p_deployment_id, p_assistant_id, p_graph_id, p_known_graph_ids);
    if v_assistant.assistant_id is null then
        select r.code, r.body into code, body
          from agent.refuse_assistant(p_deployment_id, p_assistant_id, p_graph_id) r;
        return;
    end if;

    v_check := agent.check_new_run(v_assistant, v_thread.metadata, v_request);
    if v_check.code is not null then
        select v_check.code, v_check.body into code, body;
        return;
    end if;

    if agent.names_checkpoint(v_request) then
        v_start := agent.resolve_checkpoint(
            p_deployment_id, p_thread_id, v_request.checkpoint_id, v_request.checkpoint::jsonb,
            v_request.config -> 'configurable');
        v_place := v_start.place;
        if not v_start.is_found or (v_place.checkpoint_id is null) <> (v_place.root_id is null) then
            code := 'checkpoint_not_found';
            return;
        end if;
    end if;

    if v_thread.thread_id is null then
        v_check.counts_thread := agent.insert_thread(p_deployment_id, p_thread_id, p_ttl) and v_check.counts_thread;
    end if;

    if p_strategy in ('interrupt', 'rollback') then
        v_preempted := agent.preempt_runs(p_deployment_id, p_thread_id, p_strategy, p_run_id, p_before);
        changed := case when v_preempted.ended <> '{}' then array_to_string(p_thread_id || v_preempted.ended, ' ') end;
        if v_preempted.before is not null then
            code := 'waiting';
            body := v_preempted.before;
            return;
        end if;
    end if;

    v_of_assistant := jsonb_build_object('graph_id', v_assistant.graph_id, 'assistant_id', v_assistant.assistant_id);
    -- One statement locks and checks: after a concurrent creation it is evaluated again on the row that was committed.
    update agent.threads t
       set status = 'busy',
           active_run_id = coalesce(t.active_run_id, p_run_id),
           run_seq = t.run_seq + 1,
           assistant_id = case when not v_assistant.is_system then v_assistant.assistant_id end,
           -- Unchanged where it has them: a new value, also an equal one, costs all its entries in the index again.
           metadata = case when t.metadata @> v_of_assistant then t.metadata else t.metadata || v_of_assistant end,
           updated_at = agent.now()
     where t.deployment_id = p_deployment_id
       and t.thread_id = p_thread_id
       and (p_strategy <> 'reject' or t.status <> 'busy')
       and not t.is_deleted
    returning t.* into v_thread;
    if not found then
        code := case when exists (
            select from agent.threads t where t.deployment_id = p_deployment_id and t.thread_id = p_thread_id)
            then 'thread_busy' else 'thread_not_found' end;
        return;
    end if;

    code := 'ok';
    body := agent.enqueue_run(
        v_thread, v_assistant, p_run_id, p_strategy, coalesce(p_user_id, ''), p_idempotency_key,
        p_request_hash, p_feedback_url, v_place, v_request, p_headers);
    if v_check.counts_thread then
        perform agent.change_count(p_deployment_id, 'threads', 1);
    end if;
end
$function$;

comment on function agent.create_run(
    uuid, uuid, uuid, uuid, text, text[], text, text, text, text, json, text, bigint, interval, jsonb) is
    'POST /threads/{thread_id}/runs.';
