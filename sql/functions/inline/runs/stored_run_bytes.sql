-- SPDX-License-Identifier: Apache-2.0
-- The length of a run's record as far as the storage of its values tells; nothing is fetched.
-- Returns: bytes.
-- Locks:   none.
create or replace function agent.stored_run_bytes(p_run agent.runs) returns bigint
language sql stable parallel safe
-- No SET clause: it would keep the body from being inlined.
as $function$
    select agent.stored_bytes(p_run.metadata)
        + agent.stored_bytes(p_run.input)
        + agent.stored_bytes(p_run.command)
        + agent.stored_bytes(p_run.config)
        + agent.stored_bytes(p_run.context)
        + agent.stored_bytes(p_run.error)
$function$;

comment on function agent.stored_run_bytes(agent.runs) is
    'The length of a run''s record as far as the storage of its values tells.';
