-- SPDX-License-Identifier: Apache-2.0
-- Internal. Takes the values of a checkpoint apart: an array element by element, so that two
-- checkpoints of a chat share its messages, any other value whole.
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
            select v.key, json_typeof(v.value) = 'array', v.value, v.pos
              from json_each(p_values) with ordinality as v (key, value, pos)
           ) c (name, is_list, value, pos)
     cross join lateral (
            select coalesce(array_agg(agent.digest_text(x.value::text) order by x.pos), '{}') as digests,
                   coalesce(array_agg(x.value::text order by x.pos), '{}') as contents
              from json_array_elements(
                       case when c.is_list then c.value else json_build_array(c.value) end)
                   with ordinality as x (value, pos)
           ) e
$function$;

comment on function agent.split_values(json) is
    'The values of a checkpoint as channels with contents and digests.';
