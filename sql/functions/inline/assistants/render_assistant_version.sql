-- SPDX-License-Identifier: Apache-2.0
-- The record of a version of an assistant. The only definition of this record.
-- Returns: the record.
-- Locks:   none.
create or replace function agent.render_assistant_version(p_version agent.assistant_versions) returns json
language sql stable parallel safe
-- No SET clause: it would keep the body from being inlined.
as $function$
    select json_build_object(
        'assistant_id', p_version.assistant_id,
        'graph_id', p_version.graph_id,
        'config', p_version.config,
        'context', p_version.context,
        'created_at', agent.render_time(p_version.created_at),
        'metadata', p_version.metadata,
        'version', p_version.version,
        'name', p_version.name,
        'description', p_version.description)
$function$;

comment on function agent.render_assistant_version(agent.assistant_versions) is
    'The record of a version of an assistant.';
