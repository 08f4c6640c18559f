-- SPDX-License-Identifier: Apache-2.0
-- Why agent.find_assistant found none for a new run; the arguments are those that it got.
-- Returns: graph_not_found when the assistant exists and no server executes its graph, else assistant_not_found; body:
--          a sentence with the name or id that was requested.
-- Locks:   none.
create or replace function agent.refuse_assistant(
    p_deployment_id uuid,
    p_assistant_id uuid,
    p_graph_id text,
    out code text,
    out body text
)
language plpgsql stable security invoker
set search_path = '' set jit = off set enable_seqscan = off set plan_cache_mode = force_generic_plan
as $function$
begin
    -- Clients know both by how they begin.
    select 'graph_not_found',
           format('No assistant found for "%s": no host serves its graph "%s" now.',
                  coalesce(p_graph_id, p_assistant_id::text), a.graph_id)
      into code, body
      from agent.assistants a
     where a.deployment_id = p_deployment_id
       and a.assistant_id = p_assistant_id;
    if not found then
        code := 'assistant_not_found';
        body := format(
            'No assistant found for "%s". Make sure the assistant ID is for a valid assistant or a valid graph ID.',
            coalesce(p_graph_id, p_assistant_id::text));
    end if;
end
$function$;

comment on function agent.refuse_assistant(uuid, uuid, text) is 'Why there is no assistant for a new run.';
