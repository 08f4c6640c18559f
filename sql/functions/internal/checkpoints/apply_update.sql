-- SPDX-License-Identifier: Apache-2.0
-- A checkpoint with the values that it has after the update of a command: the libraries keep them as writes to the
-- checkpoint from which the run was started, that for JavaScript with `goto`, of which it shows the nodes as `next`.
-- p_report: the report of a run: `values`, an object, and `next`, an array, as far as they have changed.
-- Returns: the row, with short values for what has changed.
-- Locks:   none.
create or replace function agent.apply_update(p_row agent.checkpoints, p_report json) returns agent.checkpoints
language plpgsql stable security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $function$
declare
    v_values json := p_report -> 'values';
    v_next   json := p_report -> 'next';
begin
    if json_typeof(v_next) = 'array' then
        p_row.next := v_next;
    end if;
    if json_typeof(v_values) = 'object' then
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

comment on function agent.apply_update(agent.checkpoints, json) is
    'A checkpoint with the values of the update of a command.';
