-- SPDX-License-Identifier: Apache-2.0
-- The assistant record of the API. The only definition of this record.
-- Returns: the record.
-- Locks:   none.
create or replace function agent.render_assistant(p_assistant agent.assistants) returns json
language sql stable parallel safe
-- No SET clause: it would keep the body from being inlined.
as $function$
    select json_build_object(
        'assistant_id', p_assistant.assistant_id,
        'graph_id', p_assistant.graph_id,
        'config', p_assistant.config,
        'context', p_assistant.context,
        'created_at', agent.render_time(p_assistant.created_at),
        'updated_at', agent.render_time(p_assistant.updated_at),
        'metadata', p_assistant.metadata,
        'version', p_assistant.version,
        'name', p_assistant.name,
        'description', p_assistant.description)
$function$;

comment on function agent.render_assistant(agent.assistants) is 'The assistant record of the API.';
