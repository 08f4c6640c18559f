-- SPDX-License-Identifier: Apache-2.0
-- The data of a stored event. p_data: as agent.place_values made it, or without p_values the data themselves.
-- p_values: the values of the event's checkpoint; null for none, and when it was deleted.
-- Returns: the JSON text.
-- Locks:   none.
create or replace function agent.compose_event(p_data text, p_values json) returns text
language sql immutable parallel safe
-- No SET clause: it would keep the body from being inlined.
as $function$
    select case
               when p_data is null then coalesce(p_values::text, 'null')
               -- The mark is searched only where it can be.
               when p_values is null then replace(p_data, E'\x01', 'null')
               when strpos(p_data, E'\x01') > 0 then replace(p_data, E'\x01', p_values::text)
               when p_values::text = '{}' then p_data
               else left(p_values::text, -1) || ',' || substr(p_data, 2)
           end
$function$;

comment on function agent.compose_event(text, json) is
    'The data of a stored event, with the values of its checkpoint.';
