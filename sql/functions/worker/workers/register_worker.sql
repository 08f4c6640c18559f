-- SPDX-License-Identifier: Apache-2.0
-- Registers a supervisor that starts, with a lease of p_lease_sec and the graphs that it executes: one element
-- of p_deployments (NAME, or NAME@ACCOUNT for another account than the built-in one) and p_graph_ids each. Creates
-- deployments that are missing, and the system assistants of p_assistant_ids, one for each graph, or none: so that an
-- assistant exists before a runner has reported its graph.
-- Without graphs it serves no runs; those of the host's earlier workers are no longer accepted once these are not
-- live.
-- Returns: one row per graph, in their order: the worker_id, new for each start, and the graph's deployment_id; the
--          nil UUID, which has no runs, where the account does not exist, is closed, or has as many deployments as it
--          may. Without graphs one row, with null.
-- Locks:   the new row, the account with a limit of deployments, new deployments, and new assistants in the order of
--          their keys.
create or replace function agent.register_worker(
    p_node_name text,
    p_host_boot_id text,
    p_pid integer,
    p_pid_start bigint,
    p_slots integer,
    p_lease_sec integer,
    p_deployments text[],
    p_graph_ids text[],
    p_assistant_ids uuid[] default '{}'
) returns table (worker_id bigint, deployment_id uuid)
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
    c_none           constant uuid := '00000000-0000-0000-0000-000000000000';
    v_now            timestamptz := agent.now();
    v_deployment_ids uuid[] := array(
        select coalesce(
                   agent.ensure_deployment(
                       split_part(d.text, '@', 1),
                       coalesce(nullif(split_part(d.text, '@', 2), '')::uuid, agent.built_in_account())),
                   c_none)
          from unnest(p_deployments) with ordinality d (text, pos)
         order by d.pos);
    v_worker_id      bigint;
begin
    insert into agent.workers (
        node_name, host_boot_id, pid, pid_start, slots, deployment_ids, graph_ids,
        lease_until, started_at)
    values (
        p_node_name, p_host_boot_id, p_pid, p_pid_start, p_slots, v_deployment_ids, p_graph_ids,
        v_now + p_lease_sec * interval '1 second', v_now)
    returning workers.worker_id into v_worker_id;
    perform agent.create_system_assistant(s.deployment_id, s.assistant_id, s.graph_id, null)
       from (
             select u.deployment_id, u.assistant_id, u.graph_id
               from unnest(v_deployment_ids, p_assistant_ids, p_graph_ids) u (deployment_id, assistant_id, graph_id)
              where u.assistant_id is not null
                and u.deployment_id <> c_none
              order by u.deployment_id, u.assistant_id
            ) s
      where not exists (
             select from agent.assistants x
              where x.deployment_id = s.deployment_id
                and x.assistant_id = s.assistant_id
                and x.is_system);
    return query
        select w.id, d.id
          from (values (v_worker_id)) w (id)
          left join unnest(v_deployment_ids) with ordinality d (id, pos) on true
         order by d.pos;
end
$function$;

comment on function agent.register_worker(
    text, text, integer, bigint, integer, integer, text[], text[], uuid[]
) is
    'Registers a supervisor, with its first lease.';
