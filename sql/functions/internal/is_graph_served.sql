-- SPDX-License-Identifier: Apache-2.0
-- Whether a supervisor executes a graph: one that is live, or one whose lease ended less than an hour ago, so
-- that runs are accepted while its host restarts, unless its host has registered a newer one.
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
        select from agent.graphs g
         where g.deployment_id = p_deployment_id
           and g.graph_id = p_graph_id)
       and exists (
            select from agent.workers w
             where exists (
                    select from unnest(w.deployment_ids, w.graph_ids) e (deployment_id, graph_id)
                     where e.deployment_id = p_deployment_id
                       and e.graph_id = p_graph_id)
               and (w.state = 'live'
                    or w.lease_until > agent.now() - interval '1 hour'
                       and not exists (
                            select from agent.workers n
                             where n.node_name = w.node_name
                               and n.worker_id > w.worker_id)));
end
$function$;

comment on function agent.is_graph_served(uuid, text) is 'Whether a supervisor executes a graph.';
