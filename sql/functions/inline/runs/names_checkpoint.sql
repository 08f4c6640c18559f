-- SPDX-License-Identifier: Apache-2.0
-- Whether the request of a run may name the checkpoint that it starts from; most requests do not, and need no
-- agent.resolve_checkpoint.
-- Returns: false, true or null.
-- Locks:   none.
create or replace function agent.names_checkpoint(p_request agent.run_request) returns boolean
language sql immutable parallel safe
-- No SET clause: it would keep the body from being inlined.
as $function$
    select p_request.checkpoint_id is not null
        or p_request.checkpoint is not null
        or p_request.config -> 'configurable' ?| array['checkpoint_id', 'checkpoint_ns', 'checkpoint_map']
$function$;

comment on function agent.names_checkpoint(agent.run_request) is
    'Whether the request of a run may name the checkpoint that it starts from.';
