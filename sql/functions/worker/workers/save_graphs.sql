-- SPDX-License-Identifier: Apache-2.0
-- Stores what a runner reported about graphs when it started, and creates the system assistants of graphs that
-- are reported for the first time, or sets their descriptions. A report that is stored already is not written
-- again, but once for each other worker, so that a supervisor may call it at each start, and several may at the same
-- time.
-- p_graphs: an array of objects with graph_id, assistant_id (of the system assistant), description, schemas,
-- drawing, error, runtime, factory and has_subgraphs. p_worker_id: null: the stored one is kept.
-- Returns: the number of graphs that are new, have changed, or are of another worker.
-- Locks:   the rows of these graphs in the order of their keys, then the assistants in theirs.
create or replace function agent.save_graphs(
    p_deployment_id uuid,
    p_graphs json,
    p_worker_id bigint default null
) returns integer
language plpgsql volatile security invoker
set search_path = '' set jit = off
as $function$
declare
    v_now   timestamptz := agent.now();
    v_count integer;
begin
    -- A supervisor that has not been restarted since the account was closed.
    if not exists (
            select from agent.deployments d
              join agent.accounts a on a.account_id = d.account_id
             where d.deployment_id = p_deployment_id
               and a.closed_at is null) then
        return 0;
    end if;
    insert into agent.graphs as g (
        deployment_id, graph_id, description, schemas, drawing, error, runtime, factory, has_subgraphs,
        reported_at, worker_id)
    select p_deployment_id, r.graph_id, r.description, r.schemas, r.drawing, r.error, r.runtime,
           coalesce(r.factory, false), coalesce(r.has_subgraphs, true), v_now, p_worker_id
      from json_to_recordset(p_graphs) as r (
               graph_id text, description text, schemas json, drawing json, error json, runtime json, factory boolean,
               has_subgraphs boolean)
     where not exists (
            select from agent.graphs x
             where x.deployment_id = p_deployment_id
               and x.graph_id = r.graph_id
               and (x.description, x.schemas::text, x.drawing::text, x.error::text, x.runtime::text, x.factory,
                    x.has_subgraphs)
                   is not distinct from
                   (r.description, r.schemas::text, r.drawing::text, r.error::text, r.runtime::text,
                    coalesce(r.factory, false), coalesce(r.has_subgraphs, true))
               and (p_worker_id is null or x.worker_id = p_worker_id))
     order by r.graph_id
        on conflict (deployment_id, graph_id) do update
       set description = excluded.description,
           schemas = excluded.schemas,
           drawing = excluded.drawing,
           error = excluded.error,
           runtime = excluded.runtime,
           factory = excluded.factory,
           has_subgraphs = excluded.has_subgraphs,
           reported_at = case
               when (g.description, g.schemas::text, g.drawing::text, g.error::text, g.runtime::text, g.factory,
                     g.has_subgraphs)
                    is distinct from
                    (excluded.description, excluded.schemas::text, excluded.drawing::text, excluded.error::text,
                     excluded.runtime::text, excluded.factory, excluded.has_subgraphs)
               then excluded.reported_at
               else g.reported_at
           end,
           worker_id = coalesce(excluded.worker_id, g.worker_id)
     -- A concurrent call stored the same.
     where (g.description, g.schemas::text, g.drawing::text, g.error::text, g.runtime::text, g.factory,
            g.has_subgraphs, g.worker_id)
           is distinct from
           (excluded.description, excluded.schemas::text, excluded.drawing::text, excluded.error::text,
            excluded.runtime::text, excluded.factory, excluded.has_subgraphs,
            coalesce(excluded.worker_id, g.worker_id));
    get diagnostics v_count = row_count;

    perform agent.create_system_assistant(p_deployment_id, r.assistant_id, r.graph_id, r.description)
       from (
             select a.*
               from json_to_recordset(p_graphs) as a (assistant_id uuid, graph_id text, description text)
              order by a.assistant_id
            ) r
      where not exists (
             select from agent.assistants x
              where x.deployment_id = p_deployment_id
                and x.assistant_id = r.assistant_id
                and x.is_system);

    -- As long as no client has changed the assistant: it may be older than the report.
    with stale as (
         select a.assistant_id, r.description
           from json_to_recordset(p_graphs) as r (assistant_id uuid, description text)
           join agent.assistants a
             on a.deployment_id = p_deployment_id
            and a.assistant_id = r.assistant_id
          where a.is_system
            and a.last_version = 1
            and a.description is distinct from r.description
          order by a.assistant_id
            for no key update of a
    ), described as (
         update agent.assistants a
            set description = s.description,
                updated_at = v_now
           from stale s
          where a.deployment_id = p_deployment_id
            and a.assistant_id = s.assistant_id
      returning a.assistant_id, a.description
    )
    update agent.assistant_versions v
       set description = d.description
      from described d
     where v.deployment_id = p_deployment_id
       and v.assistant_id = d.assistant_id
       and v.version = 1;
    return v_count;
end
$function$;

comment on function agent.save_graphs(uuid, json, bigint) is
    'Stores what a runner reported about its graphs.';
