-- SPDX-License-Identifier: Apache-2.0
-- The detail of the error assistant_not_found for a new run. p_graph_id: as agent.find_assistant.
-- Returns: a sentence with the name or id that was requested.
-- Locks:   none.
create or replace function agent.explain_no_assistant(p_assistant_id uuid, p_graph_id text) returns text
language sql stable parallel safe
-- No SET clause: it would keep the body from being inlined.
as $function$
    select pg_catalog.format(
        'No assistant found for "%s". Make sure the assistant ID is for a valid assistant or a valid graph ID.',
        coalesce(p_graph_id, p_assistant_id::text))
$function$;

comment on function agent.explain_no_assistant(uuid, text) is
    'The detail of the error assistant_not_found for a new run.';
