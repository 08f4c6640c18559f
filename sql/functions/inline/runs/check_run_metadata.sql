-- SPDX-License-Identifier: Apache-2.0
-- agent.measure_run_metadata, called only where the sum of the parts comes near its limit of 16 KB.
-- Returns: null, or the detail of an error.
-- Locks:   none.
create or replace function agent.check_run_metadata(
    p_assistant agent.assistants,
    p_thread_metadata jsonb,
    p_request agent.run_request
) returns text
language sql stable parallel safe
-- No SET clause: it would keep the body from being inlined.
as $function$
    select case
               when agent.settings_bytes(p_assistant)
                    + coalesce(octet_length(p_thread_metadata::text), 0)
                    + coalesce(octet_length(p_request.metadata::text), 0)
                    + coalesce(octet_length(p_request.config::text), 0) > 16000
               then agent.measure_run_metadata(p_assistant, p_thread_metadata, p_request)
           end
$function$;

comment on function agent.check_run_metadata(agent.assistants, jsonb, agent.run_request) is
    'The limit of the metadata and tags of a run.';
