-- SPDX-License-Identifier: Apache-2.0
-- The namespace under which the checkpoints of a subgraph are stored. A task names each subgraph with its own id; the
-- checkpoints of a subgraph with a memory of its own are under the names of the graphs alone, as the library stores and
-- finds them (recast_checkpoint_ns()).
-- Returns: p_ns if it has a checkpoint, or has no ids; else p_ns without them.
-- Locks:   none.
create or replace function agent.find_namespace(p_deployment_id uuid, p_thread_id uuid, p_ns text) returns text
language plpgsql stable security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $function$
begin
    if strpos(p_ns, ':') = 0 or exists (
        select from agent.checkpoints k
         where k.deployment_id = p_deployment_id
           and k.thread_id = p_thread_id
           and k.checkpoint_ns = p_ns)
    then
        return p_ns;
    end if;
    return array_to_string(array(
        select split_part(n.name, ':', 1)
          from string_to_table(p_ns, '|') with ordinality n (name, place)
         where n.name !~ '^[0-9]+$'
         order by n.place), '|');
end
$function$;

comment on function agent.find_namespace(uuid, uuid, text) is
    'The namespace under which the checkpoints of a subgraph are stored.';
