-- SPDX-License-Identifier: Apache-2.0
-- The position of each channel by its name: to search for each of many channels would be quadratic.
-- Returns: an object.
-- Locks:   none.
create or replace function agent.map_channels(p_channels agent.channel_value[]) returns jsonb
language plpgsql immutable parallel safe security invoker
-- No SET clause: it is called for each checkpoint, by functions that have them.
as $function$
begin
    return coalesce((
        select jsonb_object_agg(c.name, c.pos)
          from unnest(p_channels) with ordinality
               as c (name, length, bytes, list_ids, ends, stored_from, content, pos)), '{}');
end
$function$;

comment on function agent.map_channels(agent.channel_value[]) is 'The position of each channel by its name.';
