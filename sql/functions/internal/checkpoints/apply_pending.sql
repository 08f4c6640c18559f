-- SPDX-License-Identifier: Apache-2.0
-- A checkpoint with the pending writes of its tasks: of a step with parallel nodes some have ended.
-- p_report: the report of a run: `next`, an array, and `values`, an object: differences from the checkpoint, in the
-- notation of the runner protocol.
-- Returns: the row, with another `next`, short values and lists of agent.extend_list for what has changed.
-- Locks:   none.
create or replace function agent.apply_pending(p_row agent.checkpoints, p_report json) returns agent.checkpoints
language plpgsql stable security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $function$
begin
    p_row.next := p_report -> 'next';
    p_row.channels := (
        -- A full join, since a nested loop, which would be quadratic, cannot execute it.
        select coalesce(array_agg(
                   case u.notation
                       when '$same'
                       then row(
                           c.name, c.length, c.bytes, c.list_ids, c.ends, c.stored_from,
                           c.content)::agent.channel_value
                       when '$list'
                       then agent.extend_list(
                           p_row.deployment_id, p_row.thread_id, u.key,
                           row(
                               c.name, c.length, c.bytes, c.list_ids, c.ends, c.stored_from,
                               c.content)::agent.channel_value,
                           u.value -> '$list')
                       else row(
                           u.key, null, octet_length(u.content), '{}', '{}', null, u.content)::agent.channel_value
                   end
                   order by u.pos, c.pos)
                   filter (where u.key is not null and (u.notation <> '$same' or c.name is not null)), '{}')
          from (
                select m.key, m.value, m.pos, n.notation,
                       case n.notation when '$value' then m.value -> '$value' else m.value end::text as content
                  from (
                        select distinct on (e.key) e.key, e.value, e.pos
                          from json_each(p_report -> 'values') with ordinality as e (key, value, pos)
                         order by e.key, e.pos desc
                       ) m
                 cross join lateral (
                        select coalesce(max(k.word), '') as notation
                          from json_object_keys(case when agent.is_notation(m.value) then m.value end) k (word)
                       ) n
               ) u
          full join unnest(p_row.channels) with ordinality
               as c (name, length, bytes, list_ids, ends, stored_from, content, pos)
            on c.name = u.key);
    return p_row;
end
$function$;

comment on function agent.apply_pending(agent.checkpoints, json) is
    'A checkpoint with the pending writes of its tasks.';
