-- SPDX-License-Identifier: Apache-2.0
-- Adds the states of subgraphs to the tasks that execute them. A task whose checkpoint names a namespace below p_ns
-- gets the last state of that namespace, and the tasks of that state get theirs, to a depth of 10.
-- p_bytes: the limit for all states; each lookup of a namespace counts 1,000. States beyond the limit are omitted.
-- Returns: the tasks; left_bytes: the rest of p_bytes, negative when a state was left out.
-- Locks:   none.
create or replace function agent.add_subgraphs(
    p_deployment_id uuid,
    p_thread_id uuid,
    p_ns text,
    p_tasks json,
    p_bytes bigint,
    p_depth integer,
    out tasks json,
    out left_bytes bigint
)
language plpgsql stable security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_hashjoin = off set enable_sort = off
set plan_cache_mode = force_generic_plan
as $function$
declare
    -- The cost of a lookup, which is the same for a namespace without a state.
    c_lookup_bytes constant integer := 1000;
    v_task  json;
    v_ns    text;
    v_row   agent.checkpoints;
    v_state text;
    v_all   text[] := '{}';
begin
    left_bytes := p_bytes;
    for v_task in select t.task from json_array_elements(p_tasks) t (task)
    loop
        v_ns := case when json_typeof(v_task) = 'object' then v_task #>> '{checkpoint,checkpoint_ns}' end;
        -- Longer names only, which lead no task back to its own. agent.find_namespace may shorten one, so that a runner
        -- can still form a cycle: p_depth ends it, and p_bytes, from which each state takes.
        if p_depth > 0 and left_bytes >= 0 and length(v_ns) > length(p_ns) then
            v_ns := agent.find_namespace(p_deployment_id, p_thread_id, v_ns);
            select k.* into v_row
              from agent.find_last_checkpoint(p_deployment_id, p_thread_id, v_ns, null) k;
            left_bytes := left_bytes - c_lookup_bytes;
            if left_bytes < 0 or (found and v_row.state_bytes > left_bytes) then
                left_bytes := -1;
            elsif found then
                select s.body, s.left_bytes into v_state, left_bytes
                  from agent.render_checkpoint_metadata(
                           p_deployment_id, p_thread_id, v_row.checkpoint_id, v_row.run_id, v_row.metadata) o
                 cross join lateral agent.render_state(v_row, o.metadata, null, null, left_bytes, p_depth - 1) s;
                v_task := agent.concat_objects(v_task, json_build_object('state', v_state::json));
                left_bytes := left_bytes - octet_length(v_state);
            end if;
        end if;
        v_all := array_append(v_all, v_task::text);
    end loop;
    tasks := '[' || array_to_string(v_all, ',') || ']';
end
$function$;

comment on function agent.add_subgraphs(uuid, uuid, text, json, bigint, integer) is
    'Puts the states of subgraphs into the tasks that execute them.';
