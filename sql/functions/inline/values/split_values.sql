-- SPDX-License-Identifier: Apache-2.0
-- Splits the values of a checkpoint into channels, in the notation of the runner protocol: {"$list": {"keep",
-- "items"}}, {"$same": true} and {"$value": v}, each the only member of a channel's value. The elements of a list
-- become texts of their own when they average at least 64 bytes, about what a row costs; else one text has all of
-- them: the work is linear in the bytes, whatever the number of elements.
-- Returns: one row: the channels in the order of p_values, {} for an empty object. Raises an error of class 22
--          for members of the notation that have a wrong type.
-- Locks:   none.
create or replace function agent.split_values(p_values json)
returns table (channels agent.channel_content[])
language sql stable parallel safe
-- No SET clause: it would keep the body from being inlined into FROM.
as $function$
    select coalesce(
               array_agg(row(
                   c.name, c.kind, c.keep,
                   case when c.kind in ('array', 'list') then json_array_length(c.value) end,
                   e.bytes, e.content, null)::agent.channel_content
                   order by c.pos), '{}')
      from (
            select v.key,
                   case
                       when json_typeof(v.value) = 'array' then 'array'
                       when not n.is_notation then 'value'
                       when json_typeof(v.value -> '$value') is not null then 'value'
                       when json_typeof(v.value -> '$list') = 'object' then 'list'
                       when (v.value ->> '$same')::boolean then 'same'
                   end,
                   case when n.is_notation then (v.value #>> '{$list,keep}')::integer end,
                   case
                       when not n.is_notation then v.value
                       else coalesce(v.value -> '$value', v.value #> '{$list,items}')
                   end,
                   v.pos
              from json_each(p_values) with ordinality as v (key, value, pos)
             cross join lateral (select agent.is_notation(v.value) as is_notation offset 0) n
           ) c (name, kind, keep, value, pos)
     cross join lateral (
            -- The elements keep their order: nothing below sorts or joins them.
            select coalesce(sum(octet_length(y.content) + 1), 0) as bytes,
                   coalesce(array_agg(y.content), '{}') as content
              from (
                    select x.value::text as content
                      from json_array_elements(case
                               when c.kind = 'value' then json_build_array(c.value)
                               when octet_length(c.value::text) >= 64 * json_array_length(c.value) then c.value
                           end) x
                     where c.kind <> 'same'
                    union all
                    select substr(c.value::text, 2, length(c.value::text) - 2)
                     where case
                               when c.kind in ('array', 'list')
                               then octet_length(c.value::text) < 64 * json_array_length(c.value)
                           end
                    -- Not flattened: each text is computed once, for both aggregates.
                    offset 0
                   ) y
           ) e
$function$;

comment on function agent.split_values(json) is
    'The values of a checkpoint as channels with their contents.';
