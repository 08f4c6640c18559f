-- SPDX-License-Identifier: Apache-2.0
-- Splits the values of a checkpoint into channels: an array element by element, so that the checkpoints of
-- a chat share its messages; any other value as a whole. The digest and the row of an element cost as much
-- as a few hundred bytes of text, so an array whose elements average less than 64 bytes is kept whole: the
-- work is linear in the bytes, whatever the number of elements.
-- Returns: one row: the channels in the order of p_values, {} for an empty object.
-- Locks:   none.
create or replace function agent.split_values(p_values json)
returns table (channels agent.channel_content[])
language sql stable parallel safe
-- No SET clause: it would keep the body from being inlined into FROM.
as $function$
    select coalesce(
               array_agg(row(c.name, c.is_list, e.digests, e.contents)::agent.channel_content
                         order by c.pos), '{}')
      from (
            select v.key,
                   case
                       when json_typeof(v.value) = 'array' then
                           octet_length(v.value::text) >= 64 * json_array_length(v.value)
                       else false
                   end,
                   v.value, v.pos
              from json_each(p_values) with ordinality as v (key, value, pos)
           ) c (name, is_list, value, pos)
     cross join lateral (
            -- The elements keep their order: nothing below sorts or joins them.
            select coalesce(array_agg(agent.digest_text(y.content)), '{}') as digests,
                   coalesce(array_agg(y.content), '{}') as contents
              from (
                    select x.value::text as content
                      from json_array_elements(
                               case when c.is_list then c.value else json_build_array(c.value) end) x
                    -- Not flattened: each text is computed once, for both aggregates.
                    offset 0
                   ) y
           ) e
$function$;

comment on function agent.split_values(json) is
    'The values of a checkpoint as channels with contents and digests.';
