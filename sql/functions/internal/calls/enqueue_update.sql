-- SPDX-License-Identifier: Apache-2.0
-- Queues a call that updates the state of a thread. p_thread: busy, with the call as its active run. p_supersteps: an
-- array of objects with updates. p_place: the checkpoint that the request names, or null. p_before: the status of the
-- thread before it; null when the call creates the thread.
-- Returns: nothing.
-- Locks:   the caller holds the thread; takes the new rows, and one of the count of an account with a limit.
create or replace function agent.enqueue_update(
    p_thread agent.threads,
    p_call_id uuid,
    p_user_id text,
    p_seconds double precision,
    p_supersteps json,
    p_place agent.start_place,
    p_before text
) returns void
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set plan_cache_mode = force_generic_plan
as $function$
declare
    v_now      timestamptz := agent.now();
    v_graph_id text := p_thread.metadata ->> 'graph_id';
begin
    insert into agent.calls (
        deployment_id, call_id, thread_id, graph_id, op, arguments, config, checkpoint_ns, checkpoint_id,
        thread_status, created_at, deadline_at)
    values (
        p_thread.deployment_id, p_call_id, p_thread.thread_id, v_graph_id, 'update',
        json_build_object('supersteps', (
            select json_agg(s.superstep -> 'updates' order by s.pos)
              from json_array_elements(p_supersteps) with ordinality s (superstep, pos))),
        jsonb_build_object(
            'metadata', p_thread.metadata || jsonb_build_object(
                'graph_id', v_graph_id, 'thread_id', p_thread.thread_id, 'user_id', p_user_id),
            'configurable', jsonb_build_object(
                'graph_id', v_graph_id, 'thread_id', p_thread.thread_id, 'user_id', p_user_id,
                'checkpoint_id', p_place.checkpoint_id)
                || agent.render_place(p_place)),
        coalesce(p_place.checkpoint_ns, ''), p_place.checkpoint_id, p_before, v_now,
        v_now + p_seconds * interval '1 second');
    insert into agent.run_queue (
        deployment_id, run_id, thread_id, thread_seq, graph_id, state, ready_seq, events_bucket, base_checkpoint_id,
        request_bytes, op)
    values (
        p_thread.deployment_id, p_call_id, p_thread.thread_id, p_thread.run_seq, v_graph_id, 'ready',
        nextval('agent.run_ready_seq'), (v_now at time zone 'UTC')::date, p_thread.head_checkpoint_id,
        octet_length(p_supersteps::text) + octet_length(p_thread.metadata::text), 'update');
    if exists (select from agent.account_counts) then
        perform agent.change_count(p_thread.deployment_id, 'queued_runs', 1);
    end if;
end
$function$;

comment on function agent.enqueue_update(
    agent.threads, uuid, text, double precision, json, agent.start_place, text) is
    'Queues a call that updates the state of a thread.';
