-- SPDX-License-Identifier: Apache-2.0
-- The config of a run: the request's over the assistant's, member by member. metadata is
-- merged from all that is known, the run's own last; configurable always has our identifiers. A member
-- that is null in JSON is as good as absent.
-- Returns: the object.
-- Locks:   none.
create or replace function agent.merge_config(
    p_base jsonb,
    p_over jsonb,
    p_base_metadata jsonb,
    p_run_metadata jsonb,
    p_identifiers jsonb
) returns jsonb
language sql immutable parallel safe
-- No SET clause: it would keep the body from being inlined.
as $function$
    select p_base
        || coalesce(p_over, '{}')
        || jsonb_build_object(
            'metadata',
            '{"created_by": "system"}'
            || p_base_metadata
            || coalesce(nullif(p_over -> 'metadata', 'null'), '{}')
            || coalesce(p_run_metadata, '{}'),
            'configurable',
            coalesce(nullif(p_base -> 'configurable', 'null'), '{}')
            || coalesce(nullif(p_over -> 'configurable', 'null'), '{}')
            || p_identifiers)
$function$;

comment on function agent.merge_config(jsonb, jsonb, jsonb, jsonb, jsonb) is 'The config of a run.';
