-- SPDX-License-Identifier: Apache-2.0
-- The data of an event with the values of a checkpoint in them, as they are stored: without the values, whose
-- place is marked by the control character U+0001, which JSON text cannot contain (agent.compose_event).
-- p_path: the names of the members that lead to the one whose value the values replace; empty: the members of
-- p_data follow those of the values.
-- Returns: the text; null for an empty path and an object without members: the values alone. Raises an error of
--          class 22 for a path that leads nowhere, to two members, or through something that is not an object.
-- Bound:   8 names and one mark. Held by `cardinality(p_path) > 8` and `v_found <> 1`.
-- Locks:   none.
create or replace function agent.place_values(p_data json, p_path text[]) returns text
language plpgsql immutable security invoker
set search_path = ''
as $function$
declare
    v_found integer;
    v_text  text;
begin
    if cardinality(p_path) > 8 or json_typeof(p_data) is distinct from 'object' then
        raise exception using errcode = 'invalid_parameter_value',
            message = 'an event has a path that does not lead through objects';
    end if;
    select string_agg(to_json(m.key)::text || ':' || case
               when m.key is distinct from p_path[1] then m.value::text
               when cardinality(p_path) = 1 then E'\x01'
               else agent.place_values(m.value, p_path[2:])
           end, ',' order by m.number),
           count(*) filter (where m.key = p_path[1])
      into v_text, v_found
      from json_each(p_data) with ordinality m (key, value, number);
    if cardinality(p_path) > 0 and v_found <> 1 then
        raise exception using errcode = 'invalid_parameter_value',
            message = 'an event has a path that does not lead to one member';
    end if;
    return '{' || v_text || '}';
end
$function$;

comment on function agent.place_values(json, text[]) is
    'The data of an event with the place of a checkpoint''s values.';
