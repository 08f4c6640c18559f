-- SPDX-License-Identifier: Apache-2.0
-- The limit of the metadata and tags of a run, which its graph repeats with each streamed message and event:
-- 16 KB of JSON together, those of the assistant and the thread included, as agent.merge_config joins them.
-- Returns: null, or the detail of an error.
-- Locks:   none.
create or replace function agent.measure_run_metadata(
    p_assistant agent.assistants,
    p_thread_metadata jsonb,
    p_request agent.run_request
) returns text
language plpgsql stable security invoker
set search_path = ''
as $function$
declare
    c_bytes  constant integer := 16384;
    v_config jsonb;
begin
    v_config := agent.merge_config(
        p_assistant.config, p_request.config, p_assistant.metadata || coalesce(p_thread_metadata, '{}'),
        p_request.metadata, '{}');
    return case
        when octet_length((v_config -> 'metadata')::text) + coalesce(octet_length((v_config -> 'tags')::text), 0)
            > c_bytes
        then format(
            '/metadata: expected at most %s bytes of metadata and tags for the run, those of its config, its '
            'assistant and its thread included: each streamed message repeats them.', c_bytes)
    end;
end
$function$;

comment on function agent.measure_run_metadata(agent.assistants, jsonb, agent.run_request) is
    'The limit of the metadata and tags of a run.';
