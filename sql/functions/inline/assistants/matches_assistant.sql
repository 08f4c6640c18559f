-- SPDX-License-Identifier: Apache-2.0
-- Whether a search or a count includes an assistant; null arguments include all. p_name: a part of the name in lower
-- case; p_metadata: members that the assistant's metadata contains; p_served_graph_ids: system assistants of
-- other graphs are excluded, assistants of clients are not.
-- Returns: true or false.
-- Locks:   none.
create or replace function agent.matches_assistant(
    p_assistant agent.assistants,
    p_graph_id text,
    p_name text,
    p_metadata jsonb,
    p_served_graph_ids text[]
) returns boolean
language sql immutable parallel safe
-- No SET clause: it would keep the body from being inlined.
as $function$
    select (p_graph_id is null or p_assistant.graph_id = p_graph_id)
       and (p_name is null or position(p_name in lower(p_assistant.name)) > 0)
       and (p_metadata is null or p_assistant.metadata @> p_metadata)
       and (not p_assistant.is_system or p_assistant.graph_id = any (p_served_graph_ids))
$function$;

comment on function agent.matches_assistant(agent.assistants, text, text, jsonb, text[]) is
    'Whether a search includes an assistant.';
