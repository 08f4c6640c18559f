-- SPDX-License-Identifier: Apache-2.0
-- The workers of a host that are not marked dead. A supervisor that starts checks whether their processes
-- exist, and need not wait for their leases to end.
-- Returns: one row per worker, oldest first.
-- Locks:   none.
create or replace function agent.list_node_workers(p_node_name text)
returns table (worker_id bigint, host_boot_id text, pid integer, pid_start bigint)
language sql stable security invoker set search_path = ''
as $function$
    select w.worker_id, w.host_boot_id, w.pid, w.pid_start
      from agent.workers w
     where w.node_name = p_node_name
       and w.state <> 'dead'
     order by w.worker_id
$function$;

comment on function agent.list_node_workers(text) is
    'The workers of a host that are not marked dead.';
