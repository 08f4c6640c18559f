-- SPDX-License-Identifier: Apache-2.0
-- The checkpoint that a request names: by its id, or by the member of checkpoint_map for its namespace; in the
-- namespace of a subgraph without either the last one. The checkpoints of the graphs above it are those of
-- checkpoint_map, else those during which it was saved.
-- p_checkpoint, p_configurable: objects with checkpoint_ns, checkpoint_id and checkpoint_map, or null; of each member
-- the first one that has a value counts.
-- Returns: is_found: false when the thread does not have it, or one that checkpoint_map names; place: all null when the
--          request names none; root_id is null when the one of the root graph was deleted.
-- Bound:   128 checkpoints that are looked up: the members of checkpoint_map, of which the server accepts 64, and the
--          graphs above. Held by `limit 64` in sql/functions/internal/checkpoints/find_parents.sql.
-- Locks:   none.
create or replace function agent.resolve_checkpoint(
    p_deployment_id uuid,
    p_thread_id uuid,
    p_checkpoint_id uuid,
    p_checkpoint jsonb,
    p_configurable jsonb,
    out is_found boolean,
    out place agent.start_place
)
language plpgsql stable security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_hashjoin = off
set plan_cache_mode = force_generic_plan
as $function$
declare
    v_ns       text := coalesce(
        nullif(p_checkpoint ->> 'checkpoint_ns', ''), p_configurable ->> 'checkpoint_ns', '');
    v_given    jsonb := coalesce(
        nullif(nullif(p_checkpoint -> 'checkpoint_map', 'null'), '{}'),
        nullif(nullif(p_configurable -> 'checkpoint_map', 'null'), '{}'));
    v_id       uuid := coalesce(
        p_checkpoint_id, (p_checkpoint ->> 'checkpoint_id')::uuid, (p_configurable ->> 'checkpoint_id')::uuid,
        (v_given ->> v_ns)::uuid);
    v_metadata json;
    v_map      jsonb;
begin
    is_found := true;
    if v_ns = '' and v_id is null then
        return;
    end if;
    if v_ns <> '' then
        v_ns := agent.find_namespace(p_deployment_id, p_thread_id, v_ns);
    end if;
    select k.checkpoint_id, k.metadata into v_id, v_metadata
      from agent.find_last_checkpoint(p_deployment_id, p_thread_id, v_ns, v_id) k;
    is_found := found and not exists (
        select from jsonb_each_text(v_given) m
         where not exists (
            select from agent.find_checkpoint(p_deployment_id, p_thread_id, m.key, m.value::uuid)));
    if not is_found then
        return;
    end if;
    v_map := coalesce((
            select jsonb_object_agg(m.key, m.value)
              from jsonb_each_text(agent.find_parents(v_ns, v_metadata)) m
             where exists (
                select from agent.find_checkpoint(p_deployment_id, p_thread_id, m.key, m.value::uuid))), '{}')
        || coalesce(v_given, '{}') || jsonb_build_object(v_ns, v_id);
    place := row(v_ns, v_id, v_map ->> '', nullif(v_map - '', '{}'), v_given);
end
$function$;

comment on function agent.resolve_checkpoint(uuid, uuid, uuid, jsonb, jsonb) is 'The checkpoint that a request names.';
