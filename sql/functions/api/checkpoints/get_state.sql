-- SPDX-License-Identifier: Apache-2.0
-- GET /threads/{thread_id}/state and /state/{checkpoint_id}, POST /threads/{thread_id}/state/checkpoint.
-- p_request: null, or an object: checkpoint (checkpoint_ns, checkpoint_id, checkpoint_map), select, subgraphs: the
-- tasks show the states of subgraphs, of 16 MB together.
-- Returns: ok with the state at p_checkpoint_id, or at the checkpoint of the request: without an id the last one of
--          the namespace, of the root graph the head, with the pending writes of its tasks. A thread without
--          checkpoints has an empty state; thread_not_found; checkpoint_not_found.
--          cursor: for values of more than p_max_bytes (null = no limit) where agent.read_values begins to read them,
--          else null. body then has U+0001, which JSON text cannot contain, in place of the values. With subgraphs
--          body is null instead when the whole state has more than p_max_bytes.
-- Locks:   none.
create or replace function agent.get_state(
    p_deployment_id uuid,
    p_thread_id uuid,
    p_checkpoint_id uuid,
    p_max_bytes bigint default null,
    p_request json default null,
    out code text,
    out body text,
    out cursor text
)
language plpgsql stable security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_hashjoin = off
set plan_cache_mode = force_generic_plan
as $function$
declare
    c_subgraph_bytes constant bigint := 16777216;
    v_deep           boolean := coalesce((p_request ->> 'subgraphs')::boolean, false);
    v_left           bigint;
    v_ns             text := coalesce(p_request #>> '{checkpoint,checkpoint_ns}', '');
    v_named          uuid := coalesce(
        p_checkpoint_id, (p_request #>> '{checkpoint,checkpoint_id}')::uuid,
        (p_request #>> array['checkpoint', 'checkpoint_map', v_ns])::uuid);
    v_id             uuid := v_named;
    v_row            agent.checkpoints;
begin
    select coalesce(v_named, case when v_ns = '' then t.head_checkpoint_id end) into v_id
      from agent.threads t
     where t.deployment_id = p_deployment_id
       and t.thread_id = p_thread_id
       and not t.is_deleted;
    if not found then
        code := 'thread_not_found';
        return;
    end if;
    if v_ns <> '' then
        v_ns := agent.find_namespace(p_deployment_id, p_thread_id, v_ns);
    end if;
    if v_id is not null or v_ns <> '' then
        select k.* into v_row
          from agent.find_last_checkpoint(p_deployment_id, p_thread_id, v_ns, v_id) k;
        if not found and (v_named is not null or v_ns <> '') then
            code := 'checkpoint_not_found';
            return;
        end if;
    end if;
    code := 'ok';
    if v_deep and v_row.state_bytes > p_max_bytes then
        return;
    end if;
    select s.body, s.cursor, s.left_bytes into body, cursor, v_left
      from agent.render_checkpoint_metadata(
               p_deployment_id, p_thread_id, v_row.checkpoint_id, v_row.run_id, v_row.metadata) o
     cross join lateral agent.render_state(
               v_row, o.metadata, agent.read_words(p_request -> 'select'), p_max_bytes,
               case when v_deep then coalesce(p_max_bytes, c_subgraph_bytes) end, 10,
               v_named is null and v_ns = '') s;
    if v_deep and (
        v_left < 0 and p_max_bytes is not null or octet_length(body) > p_max_bytes or cursor is not null)
    then
        body := null;
        cursor := null;
    end if;
end
$function$;

comment on function agent.get_state(uuid, uuid, uuid, bigint, json) is 'GET /threads/{thread_id}/state.';
