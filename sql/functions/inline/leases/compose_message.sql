-- SPDX-License-Identifier: Apache-2.0
-- The message that begins an attempt: agent.compose_start for a run, agent.compose_call for a call (p_op).
-- Returns: one row or none, as these; state_bytes: the length of the state that the runner reads, null for none.
-- Locks:   none.
create or replace function agent.compose_message(
    p_deployment_id uuid,
    p_run_id uuid,
    p_thread_id uuid,
    p_graph_id text,
    p_epoch integer,
    p_attempt smallint,
    p_op text
) returns table (start text, state_bytes bigint)
language sql stable parallel safe
-- No SET clause: it would keep the body from being inlined into FROM.
as $function$
    select s.start, s.state_bytes
      from agent.compose_start(p_deployment_id, p_run_id, p_thread_id, p_graph_id, p_epoch, p_attempt) s
     where p_op is null
     union all
    select s.start, s.state_bytes
      from agent.compose_call(p_deployment_id, p_run_id, p_thread_id, p_epoch, p_attempt) s
     where p_op is not null
$function$;

comment on function agent.compose_message(uuid, uuid, uuid, text, integer, smallint, text) is
    'The message that begins an attempt of a run or a call.';
