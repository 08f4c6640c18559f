-- SPDX-License-Identifier: Apache-2.0
-- The data of a stored event. p_data: as agent.place_values made it, or without p_values the data themselves.
-- p_values: the values of the event's checkpoint; null for none, and when it was deleted.
-- Returns: the JSON text.
-- Locks:   none.
create or replace function agent.compose_event(p_data text, p_values text) returns text
language sql stable parallel safe
-- No SET clause: it would keep the body from being inlined.
as $function$
    select case
               when p_data is null then coalesce(p_values, 'null')
               -- The mark is searched only where it can be.
               when p_values is null then replace(p_data, E'\x01', 'null')
               when strpos(p_data, E'\x01') > 0
                   then concat(split_part(p_data, E'\x01', 1), p_values, split_part(p_data, E'\x01', 2))
               when p_values = '{}' then p_data
               else concat(left(p_values, -1), ',', substr(p_data, 2))
           end
$function$;

comment on function agent.compose_event(text, text) is
    'The data of a stored event, with the values of its checkpoint.';
