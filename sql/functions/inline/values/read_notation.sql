-- SPDX-License-Identifier: Apache-2.0
-- Reads a channel's value that is notation of the runner protocol: an object whose only member is $list, $same or
-- $value. Most other objects are rejected by the first name in their text, without reading the rest.
-- Returns: one row: is_notation, and if it is true the value of the member; else value, list and same are null.
-- Locks:   none.
create or replace function agent.read_notation(p_value json)
returns table (is_notation boolean, value json, list json, same text)
language sql immutable parallel safe
-- No SET clause: it would keep the body from being inlined into FROM.
as $function$
    select r.count = 1 and num_nonnulls(r.value, r.list, r.same) = 1,
           case when r.count = 1 then r.value[1] end,
           case when r.count = 1 then r.list[1] end,
           case when r.count = 1 then r.same[1] #>> '{}' end
      from (
            select count(*) as count,
                   array_agg(m.value) filter (where m.key = '$value') as value,
                   array_agg(m.value) filter (where m.key = '$list') as list,
                   array_agg(m.value) filter (where m.key = '$same') as same
              from json_each(
                       case
                           when json_typeof(p_value) = 'object'
                                -- A name may be written with an escape.
                                and left(p_value::text, 200) ~ '^\s*(\{\s*("[$\\]|$)|$)'
                           then p_value
                       end) m
           ) r
$function$;

comment on function agent.read_notation(json) is 'A channel''s value that is notation of the runner protocol.';
