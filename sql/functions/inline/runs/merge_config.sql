-- SPDX-License-Identifier: Apache-2.0
-- The config of a run: the request's members over the assistant's. metadata is merged from all sources, the
-- run's own last; configurable always contains the server's identifiers. A JSON null counts as absent.
-- Returns: the object.
-- Locks:   none.
create or replace function agent.merge_config(
    p_base jsonb,
    p_over jsonb,
    p_base_metadata jsonb,
    p_run_metadata jsonb,
    p_identifiers jsonb
) returns jsonb
language sql stable parallel safe
-- No SET clause: it would keep the body from being inlined.
as $function$
    select p_base
        || coalesce(p_over, '{}')
        || jsonb_build_object(
            'metadata',
            '{"created_by": "system"}'
            || coalesce(nullif(p_base -> 'metadata', 'null'), '{}')
            || p_base_metadata
            || coalesce(nullif(p_over -> 'metadata', 'null'), '{}')
            || coalesce(p_run_metadata, '{}'),
            'configurable',
            '{"user_id": ""}'
            || agent.drop_identity(p_base -> 'configurable')
            || agent.drop_identity(p_over -> 'configurable')
            || p_identifiers)
$function$;

comment on function agent.merge_config(jsonb, jsonb, jsonb, jsonb, jsonb) is 'The config of a run.';
