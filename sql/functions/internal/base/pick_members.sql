-- SPDX-License-Identifier: Apache-2.0
-- Some members of a JSON object, in its order; missing names are ignored.
-- Returns: the object.
-- Locks:   none.
create or replace function agent.pick_members(p_object json, p_names text[]) returns json
language plpgsql immutable parallel safe security invoker
set search_path = ''
as $function$
begin
    return (
        select coalesce(json_object_agg(m.key, m.value), '{}')
          from json_each(p_object) m
         where m.key = any (p_names));
end
$function$;

comment on function agent.pick_members(json, text[]) is 'Some members of a JSON object.';
