-- SPDX-License-Identifier: Apache-2.0
-- Whether a supervisor executes a graph, as agent.list_served_graphs.
-- Returns: true or false.
-- Locks:   none.
create or replace function agent.is_graph_served(
    p_deployment_id uuid,
    p_graph_id text
) returns boolean
language plpgsql stable security invoker
set search_path = '' set jit = off set enable_seqscan = off set plan_cache_mode = force_generic_plan
as $function$
begin
    return exists (
        select from agent.find_serving_workers() w
         where exists (
                select from unnest(w.deployment_ids, w.graph_ids) e (deployment_id, graph_id)
                 where e.deployment_id = p_deployment_id
                   and e.graph_id = p_graph_id));
end
$function$;

comment on function agent.is_graph_served(uuid, text) is 'Whether a supervisor executes a graph.';
