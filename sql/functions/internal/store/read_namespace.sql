-- SPDX-License-Identifier: Apache-2.0
-- Reads a namespace of the store: an array of 1 to 32 labels, of 1,024 bytes together, which are not empty and have
-- no period. p_least: the smallest number of labels; p_labels null is [].
-- Returns: the labels; raises invalid_parameter_value (the runner's arguments are refused).
-- Locks:   none.
create or replace function agent.read_namespace(p_labels json, p_least integer)
returns text[]
language plpgsql immutable security invoker
set search_path = ''
as $function$
declare
    v_labels text[] := '{}';
begin
    if json_typeof(p_labels) = 'array' then
        if exists (select from json_array_elements(p_labels) l (label) where json_typeof(l.label) <> 'string') then
            v_labels := null;
        else
            v_labels := array(
                select l.label from json_array_elements_text(p_labels) with ordinality l (label, pos) order by l.pos);
        end if;
    elsif json_typeof(p_labels) <> 'null' then
        v_labels := null;
    end if;
    if (cardinality(v_labels) between p_least and 32
        and (select coalesce(sum(octet_length(l.label)), 0) <= 1024
                    and coalesce(bool_and(l.label <> '' and strpos(l.label, '.') = 0), true)
               from unnest(v_labels) l (label))) is not true
    then
        raise exception using errcode = 'invalid_parameter_value', message = 'a namespace is not valid';
    end if;
    return v_labels;
end
$function$;

comment on function agent.read_namespace(json, integer) is 'Reads and checks a namespace of the store.';
