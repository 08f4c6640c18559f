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
                   c.name, c.kind, c.keep, c.length, e.bytes, e.content, null)::agent.channel_content), '{}')
      from (
            select v.key,
                   case
                       when json_typeof(v.value) = 'array' then 'array'
                       when n.is_notation is not true then 'value'
                       when n.value is not null then 'value'
                       when json_typeof(n.list) = 'object' then 'list'
                       when n.same::boolean then 'same'
                   end,
                   l.keep,
                   d.value,
                   case when n.value is null and json_typeof(d.value) = 'array' then json_array_length(d.value) end
              from json_each(p_values) v
             cross join lateral agent.read_notation(v.value) n
              left join lateral json_to_record(case when json_typeof(n.list) = 'object' then n.list end)
                   l (keep integer, items json) on true
             cross join lateral (
                    select case when n.is_notation then coalesce(n.value, l.items) else v.value end) d (value)
            -- Not flattened: each expression is computed once.
            offset 0
           ) c (name, kind, keep, value, length)
     cross join lateral (
            -- The elements keep their order: nothing below sorts or joins them.
            select coalesce(sum(octet_length(y.content) + 1), 0) as bytes,
                   coalesce(array_agg(y.content), '{}') as content
              from (
                    select x.value::text as content
                      from json_array_elements(case
                               when c.kind = 'value' then json_build_array(c.value)
                               when octet_length(c.value::text) >= 64 * c.length then c.value
                           end) x
                     where c.kind <> 'same'
                    union all
                    select substr(c.value::text, 2, length(c.value::text) - 2)
                     where case
                               when c.kind in ('array', 'list')
                               then octet_length(c.value::text) < 64 * c.length
                           end
                    -- Not flattened: each text is computed once, for both aggregates.
                    offset 0
                   ) y
           ) e
$function$;

comment on function agent.split_values(json) is
    'The values of a checkpoint as channels with their contents.';
