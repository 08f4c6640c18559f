-- SPDX-License-Identifier: Apache-2.0
-- The length of a run's record, without most of its short members.
-- Returns: bytes.
-- Locks:   none.
create or replace function agent.run_bytes(p_run agent.runs) returns bigint
language sql stable parallel safe
-- No SET clause: it would keep the body from being inlined.
as $function$
    select agent.value_bytes(p_run.metadata)
        + agent.value_bytes(p_run.input)
        + agent.value_bytes(p_run.command)
        + agent.value_bytes(p_run.config)
        + agent.value_bytes(p_run.context)
        + agent.value_bytes(p_run.error)
$function$;

comment on function agent.run_bytes(agent.runs) is 'The length of a run''s record.';
