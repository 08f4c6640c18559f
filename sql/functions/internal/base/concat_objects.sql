-- SPDX-License-Identifier: Apache-2.0
-- The members of two JSON objects in one; a member of the second replaces one of the same name. Values keep
-- their exact text, which jsonb would not preserve.
-- Returns: the object.
-- Locks:   none.
create or replace function agent.concat_objects(p_base json, p_over json) returns json
language plpgsql immutable parallel safe security invoker
set search_path = ''
as $function$
begin
    return (
        select coalesce(json_object_agg(m.key, m.value), '{}')
          from (
                select b.key, b.value
                  from json_each(p_base) b
                 where b.key <> all (array(select json_object_keys(p_over)))
                 union all
                select o.key, o.value
                  from json_each(p_over) o
               ) m);
end
$function$;

comment on function agent.concat_objects(json, json) is 'The members of two JSON objects in one.';
