-- SPDX-License-Identifier: Apache-2.0
-- Adds a member to values, or replaces the one of that name.
-- p_values: the content of agent.compose_bounded_values. If the values are sent in parts the member is added after
-- U+0001, even if they have one of that name: a parser uses the last one. A value that is not an object is unchanged.
-- Returns: the text.
-- Locks:   none.
create or replace function agent.add_to_values(p_values text, p_name text, p_member json) returns text
language plpgsql immutable parallel safe security invoker
set search_path = ''
as $function$
begin
    if starts_with(p_values, E'{\x01') then
        return left(p_values, -1) || ',' || to_json(p_name) || ':' || p_member || '}';
    end if;
    if not starts_with(p_values, '{') then
        return p_values;
    end if;
    return agent.concat_objects(p_values::json, json_build_object(p_name, p_member));
end
$function$;

comment on function agent.add_to_values(text, text, json) is 'Adds a member to values.';
