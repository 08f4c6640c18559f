-- SPDX-License-Identifier: Apache-2.0
-- Whether one of the checkpoints of subgraphs from which a run starts was deleted. p_map: namespace -> checkpoint_id.
-- Returns: true or false.
-- Locks:   none.
create or replace function agent.misses_checkpoint(
    p_deployment_id uuid,
    p_thread_id uuid,
    p_map jsonb
) returns boolean
language plpgsql stable security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set enable_hashjoin = off set enable_mergejoin = off set plan_cache_mode = force_generic_plan
as $function$
begin
    return exists (
        select
          from jsonb_each_text(p_map) s
         where not exists (
               select from agent.find_checkpoint(p_deployment_id, p_thread_id, s.key, s.value::uuid)));
end
$function$;

comment on function agent.misses_checkpoint(uuid, uuid, jsonb) is
    'Whether a checkpoint of a subgraph from which a run starts was deleted.';
