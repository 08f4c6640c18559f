-- SPDX-License-Identifier: Apache-2.0
-- Whether a JSON object has one member, and that is $list, $same or $value.
-- Returns: true or false.
-- Locks:   none.
create or replace function agent.has_notation_name(p_object json) returns boolean
language plpgsql immutable parallel safe security invoker
set search_path = ''
as $function$
begin
    return (
        select count(*) = 1 and bool_and(k.name in ('$list', '$same', '$value'))
          from json_object_keys(p_object) k (name));
end
$function$;

comment on function agent.has_notation_name(json) is
    'Whether an object''s only member is notation of the runner protocol.';
