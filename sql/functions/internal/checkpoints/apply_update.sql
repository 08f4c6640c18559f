-- SPDX-License-Identifier: Apache-2.0
-- A checkpoint with the values that it has after the update of a command: the libraries keep them as writes to the
-- checkpoint from which the run was started, that for JavaScript with `goto`, of which it shows the nodes as `next`.
-- p_row: null, or a row of nulls, for none.
-- Returns: the row; one with an update has short values for what has changed, and no state_bytes: it is sent whole.
-- Locks:   none.
create or replace function agent.apply_update(p_row agent.checkpoints) returns agent.checkpoints
language plpgsql stable security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $function$
declare
    v_values json;
    v_next   json;
begin
    select u.task::json -> 'values', u.task::json -> 'next' into v_values, v_next
      from agent.find_task_report(
               p_row.deployment_id, p_row.thread_id, p_row.checkpoint_ns, p_row.checkpoint_id, agent.update_id(),
               'infinity') u;
    if json_typeof(v_next) = 'array' then
        p_row.next := v_next;
    end if;
    if json_typeof(v_values) = 'object' then
        p_row.state_bytes := null;
        p_row.channels := (
            select coalesce(array_agg(
                       case
                           when u.key is null
                           then row(
                               c.name, c.length, c.bytes, c.list_ids, c.ends, c.stored_from,
                               c.content)::agent.channel_value
                           else row(
                               u.key, null, octet_length(u.content), '{}', '{}', null, u.content)::agent.channel_value
                       end
                       order by c.pos, u.pos), '{}')
              from unnest(p_row.channels) with ordinality
                   as c (name, length, bytes, list_ids, ends, stored_from, content, pos)
              full join (
                    select distinct on (e.key) e.key, e.value::text as content, e.pos
                      from json_each(v_values) with ordinality as e (key, value, pos)
                     order by e.key, e.pos desc
                   ) u on u.key = c.name);
    end if;
    return p_row;
end
$function$;

comment on function agent.apply_update(agent.checkpoints) is
    'A checkpoint with the values of the update of a command.';
