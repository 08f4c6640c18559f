-- SPDX-License-Identifier: Apache-2.0
-- Appends the member "values" to an object.
-- p_values: of agent.compose_bounded_values, whose mark stays; null for a JSON null.
-- Returns: the text of the object, and not json, since a cast copies it twice.
-- Locks:   none.
create or replace function agent.append_values(p_object json, p_values text) returns text
language sql immutable parallel safe
-- No SET clause: it would keep the body from being inlined.
as $function$
    select case p_object::text when '{}' then '{' else left(p_object::text, -1) || ', ' end
           || '"values" : ' || coalesce(p_values, 'null') || '}'
$function$;

comment on function agent.append_values(json, text) is 'Appends the member "values" to an object.';
