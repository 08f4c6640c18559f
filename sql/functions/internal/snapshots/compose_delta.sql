-- SPDX-License-Identifier: Apache-2.0
-- The body of a part of agent.read_delta. p_seeds: of each channel, null for none; p_texts, p_owners: the writes, from
-- the newest to the oldest, and the position of the channel of each in p_names.
-- Returns: one line, an object with a member for each channel.
-- Locks:   none.
create or replace function agent.compose_delta(p_names text[], p_seeds text[], p_texts text[], p_owners integer[])
returns text
language sql immutable security invoker
set search_path = ''
as $function$
    select translate(
               '{' || string_agg(
                   to_json(n.name)::text || ':{' || coalesce('"seed":' || p_seeds[n.pos] || ',', '') || '"writes":['
                   || coalesce(w.texts, '') || ']}', ',' order by n.pos) || '}', E'\n\r', '  ')
      from unnest(p_names) with ordinality n (name, pos)
      left join (
            select t.owner, string_agg(t.text, ',' order by t.pos desc) as texts
              from unnest(p_texts, p_owners) with ordinality t (text, owner, pos)
             group by t.owner
           ) w
        on w.owner = n.pos
$function$;

comment on function agent.compose_delta(text[], text[], text[], integer[]) is 'The body of a part of a delta.';
