-- SPDX-License-Identifier: Apache-2.0
-- The end of a run, for agent.finalize_runs. p_run: its queue row. p_status: a final status.
-- p_last_event_seq null: agent.finalize_runs reads it from the events. p_is_failure: the server ended it.
-- p_value: the result of a call that changes nothing. p_cancel_reason: of a run that no worker held; else the queue row
-- has it.
-- Returns: the agent.run_end.
-- Locks:   none.
create or replace function agent.make_end(
    p_run agent.run_queue,
    p_status text,
    p_error json default null,
    p_last_event_seq bigint default null,
    p_is_failure boolean default true,
    p_value json default null,
    p_cancel_reason text default null
) returns agent.run_end
language sql immutable parallel safe
-- No SET clause: it would keep the body from being inlined.
as $function$
    select row(
               p_run.deployment_id, p_run.thread_id, p_run.run_id, p_status, p_error,
               p_last_event_seq, p_is_failure, p_value,
               case p_status when 'interrupted' then coalesce(p_cancel_reason, p_run.cancel_reason) end)::agent.run_end
$function$;

comment on function agent.make_end(agent.run_queue, text, json, bigint, boolean, json, text) is
    'The end of a run, for agent.finalize_runs.';
