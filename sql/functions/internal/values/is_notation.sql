-- SPDX-License-Identifier: Apache-2.0
-- Whether a channel's value has the notation of the runner protocol: an object whose only member is $list, $same or
-- $value. Most other objects are rejected by the first name in their text, without reading the rest.
-- Returns: true or false.
-- Locks:   none.
create or replace function agent.is_notation(p_value json) returns boolean
language sql immutable parallel safe
set search_path = ''
as $function$
    select count(*) = 1 and bool_and(m.key in ('$value', '$list', '$same'))
      from json_each(
               case
                   when json_typeof(p_value) = 'object'
                        -- A name may be written with an escape.
                        and left(p_value::text, 200) ~ '^\s*(\{\s*("[$\\]|$)|$)'
                   then p_value
               end) m
$function$;

comment on function agent.is_notation(json) is 'Whether a channel''s value has the notation of the runner protocol.';
