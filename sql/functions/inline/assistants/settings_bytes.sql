-- SPDX-License-Identifier: Apache-2.0
-- The share of an assistant in the record and in the start message of each of its runs.
-- Returns: bytes.
-- Locks:   none.
create or replace function agent.settings_bytes(p_assistant agent.assistants) returns integer
language sql immutable parallel safe
-- No SET clause: it would keep the body from being inlined.
as $function$
    select octet_length(p_assistant.config::text)
        + octet_length(p_assistant.context::text)
        + octet_length(p_assistant.metadata::text)
$function$;

comment on function agent.settings_bytes(agent.assistants) is
    'The share of an assistant in each of its runs, in bytes.';
