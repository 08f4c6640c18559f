-- SPDX-License-Identifier: Apache-2.0
-- A host starts without graphs. It becomes the host's newest worker, dead and without graphs, so that those of
-- earlier workers are no longer served once these are not live (agent.is_graph_served); otherwise they would
-- accept runs for another hour.
-- Returns: true if a worker of the host had graphs.
-- Locks:   the new row.
create or replace function agent.retire_node(p_node_name text) returns boolean
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
    v_now timestamptz := agent.now();
begin
    insert into agent.workers (
        node_name, host_boot_id, pid, pid_start, slots, deployment_ids, graph_ids, state,
        lease_until, started_at, dead_at)
    select p_node_name, '', 0, 0, 0, '{}', '{}', 'dead', v_now, v_now, v_now
      from (
            select w.graph_ids
              from agent.workers w
             where w.node_name = p_node_name
             order by w.worker_id desc
             limit 1
           ) newest
     where newest.graph_ids <> '{}';
    return found;
end
$function$;

comment on function agent.retire_node(text) is 'A host starts without graphs.';
