-- SPDX-License-Identifier: Apache-2.0
-- Registers a supervisor that starts, with a lease of p_lease_sec.
-- Returns: its worker_id, new for each start.
-- Locks:   the new row.
create or replace function agent.register_worker(
    p_node_name text,
    p_host_boot_id text,
    p_pid integer,
    p_pid_start bigint,
    p_slots integer,
    p_lease_sec integer,
    p_graph_ids text[]
) returns bigint
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
    v_now       timestamptz := agent.now();
    v_worker_id bigint;
begin
    insert into agent.workers (
        node_name, host_boot_id, pid, pid_start, slots, graph_ids, lease_until, started_at)
    values (
        p_node_name, p_host_boot_id, p_pid, p_pid_start, p_slots, p_graph_ids,
        v_now + p_lease_sec * interval '1 second', v_now)
    returning worker_id into v_worker_id;
    return v_worker_id;
end
$function$;

comment on function agent.register_worker(text, text, integer, bigint, integer, integer, text[]) is
    'Registers a supervisor, with its first lease.';
