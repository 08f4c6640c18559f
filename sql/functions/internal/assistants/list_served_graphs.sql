-- SPDX-License-Identifier: Apache-2.0
-- The graphs of which agent.find_assistant accepts runs: those that the server of the request executes
-- (p_known_graph_ids), and those of agent.find_serving_workers, also before a runner has reported them.
-- Returns: their names, some of them twice.
-- Locks:   none.
create or replace function agent.list_served_graphs(
    p_deployment_id uuid,
    p_known_graph_ids text[]
) returns text[]
language plpgsql stable security invoker
set search_path = '' set jit = off set enable_seqscan = off set plan_cache_mode = force_generic_plan
as $function$
begin
    return p_known_graph_ids || array(
        select distinct e.graph_id
          from agent.find_serving_workers() w
         cross join lateral unnest(w.deployment_ids, w.graph_ids) e (deployment_id, graph_id)
         where e.deployment_id = p_deployment_id);
end
$function$;

comment on function agent.list_served_graphs(uuid, text[]) is 'The graphs of which runs are accepted.';
