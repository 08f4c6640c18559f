-- SPDX-License-Identifier: Apache-2.0
-- Whether a channel's value is notation of the runner protocol: an object whose only member is $list, $same or
-- $value. Most objects are rejected by the first name in their text, without reading the others.
-- Returns: true or false.
-- Locks:   none.
create or replace function agent.is_notation(p_value json) returns boolean
language sql immutable parallel safe
-- No SET clause: it would keep the body from being inlined.
as $function$
    select case
               -- A name may be written with an escape.
               when left(p_value::text, 200) ~ '^\s*(\{\s*("[$\\]|$)|$)' then agent.has_notation_name(p_value)
               else false
           end
$function$;

comment on function agent.is_notation(json) is
    'Whether a channel''s value is notation of the runner protocol.';
