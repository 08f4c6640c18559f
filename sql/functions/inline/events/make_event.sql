-- SPDX-License-Identifier: Apache-2.0
-- An event of a run, to be inserted. p_data: JSON text; with p_checkpoint_id what agent.place_values
-- made, null for the values alone.
-- Returns: the agent.batch_event.
-- Locks:   none.
create or replace function agent.make_event(
    p_deployment_id uuid,
    p_run_id uuid,
    p_epoch integer,
    p_seq bigint,
    p_event text,
    p_data text,
    p_checkpoint_id uuid default null
) returns agent.batch_event
language sql immutable parallel safe
-- No SET clause: it would keep the body from being inlined.
as $function$
    select row(
               p_deployment_id, p_run_id, p_epoch, p_seq, p_event, p_data,
               p_checkpoint_id)::agent.batch_event
$function$;

comment on function agent.make_event(uuid, uuid, integer, bigint, text, text, uuid) is
    'An event of a run, to be inserted.';
