-- SPDX-License-Identifier: Apache-2.0
-- Makes runs final; no other function does. Record, usage, webhook, queue row, thread and the next run of the
-- thread change together. A run that succeeded and has feedback addresses gets its last event here. A call has no
-- record but its own, which agent.finish_calls changes.
-- p_worker_id: the worker that reported the ends; null when a cancel or a loss ended the runs, so that a
-- batch the worker repeats does not count these ends as its own.
-- Returns: whether a next run became ready.
-- Locks:   the caller holds the threads and the queue rows; takes the records, and rows of the counts of accounts
--          with a limit.
create or replace function agent.finalize_runs(
    p_worker_id bigint,
    p_ends agent.run_end[]
) returns boolean
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_hashjoin = off
set enable_mergejoin = off set plan_cache_mode = force_generic_plan
as $function$
declare
    v_now      timestamptz := agent.now();
    v_feedback agent.batch_event[];
    v_webhooks boolean;
    v_gone     agent.run_queue[];
    v_calls    agent.run_queue[];
begin
    with finished as (
        update agent.runs r
           set status = e.status,
               error = e.error,
               cancel_reason = e.cancel_reason,
               last_checkpoint_id = case when t.head_run_id = r.run_id then t.head_checkpoint_id end,
               last_event_seq = coalesce(
                   e.last_event_seq,
                   agent.last_event_seq(q.deployment_id, q.events_bucket, q.run_id))
                   + case when e.status = 'success' and r.feedback is not null then 1 else 0 end,
               started_at = q.started_at,
               updated_at = v_now,
               finished_at = v_now
          from unnest(p_ends) e
         cross join lateral (
                select x.*
                  from agent.run_queue x
                 where x.run_id = e.run_id
                   and x.deployment_id is not distinct from e.deployment_id
                 limit 1
               ) q
         cross join lateral (
                select x.head_run_id, x.head_checkpoint_id
                  from agent.threads x
                 where x.deployment_id = e.deployment_id
                   and x.thread_id = e.thread_id
                 limit 1
               ) t
         cross join lateral (
                select x.ctid
                  from agent.runs x
                 where x.run_id = e.run_id
                   and x.deployment_id is not distinct from e.deployment_id
                 limit 1
               ) i
         where r.ctid = i.ctid
        returning r.deployment_id, r.run_id, r.thread_id, r.assistant_id, r.graph_id, r.status,
                  q.attempts, q.epoch, r.created_at, r.started_at, r.last_event_seq, r.feedback, r.webhook
    ),
    counted as (
        insert into agent.usage_events (
            deployment_id, run_id, thread_id, assistant_id, graph_id, status, attempts, epoch,
            worker_id, created_at, started_at, finished_at)
        select f.deployment_id, f.run_id, f.thread_id, f.assistant_id, f.graph_id, f.status, f.attempts,
               f.epoch, p_worker_id, f.created_at, f.started_at, v_now
          from finished f
    )
    select array_agg(agent.make_event(
               f.deployment_id, f.run_id, f.epoch, f.last_event_seq, 'feedback', f.feedback::text))
               filter (where f.status = 'success' and f.feedback is not null),
           bool_or(f.webhook is not null)
      into v_feedback, v_webhooks
      from finished f;

    if v_feedback is not null then
        perform agent.save_feedback(v_feedback);
    end if;
    if v_webhooks then
        perform agent.record_webhooks(p_ends, false);
    end if;

    with gone as (
        delete from agent.run_queue q
         where q.ctid = any (array(
                select i.ctid
                  from unnest(p_ends) e
                 cross join lateral (
                        select x.ctid
                          from agent.run_queue x
                         where x.run_id = e.run_id
                           and x.deployment_id is not distinct from e.deployment_id
                         limit 1
                       ) i))
        returning q as lease
    )
    select array_agg(g.lease), array_agg(g.lease) filter (where (g.lease).op is not null) into v_gone, v_calls
      from gone g;
    if exists (select from agent.account_counts) then
        perform agent.count_ended_runs(v_gone);
    end if;

    return agent.promote_next_runs(case
        when v_calls is null then p_ends else agent.finish_calls(p_worker_id, v_calls, p_ends) end);
end
$function$;

comment on function agent.finalize_runs(bigint, agent.run_end[]) is
    'Makes runs final and promotes the next ones.';
