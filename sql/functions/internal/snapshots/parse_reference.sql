-- SPDX-License-Identifier: Apache-2.0
-- Parses a reference of the runner protocol to a value: a digest; null for an empty value; or {"list": {"keep": k,
-- "items": [digest, ...]}}.
-- Returns: the digests, in order; keep: of a list, else null. Raises an error of class 22 for anything else, and for
--          more than 65,536 digests.
-- Locks:   none.
create or replace function agent.parse_reference(
    p_reference json,
    out digests uuid[],
    out keep integer
)
language plpgsql immutable parallel safe security invoker
set search_path = ''
as $function$
declare
    v_list json;
begin
    case json_typeof(p_reference)
        when 'null' then
            digests := '{}';
            return;
        when 'string' then
            digests := array[(p_reference #>> '{}')::uuid];
            return;
        when 'object' then
            v_list := p_reference -> 'list';
        else
            v_list := null;
    end case;
    if json_typeof(v_list -> 'keep') = 'number' and json_typeof(v_list -> 'items') = 'array'
        and json_array_length(v_list -> 'items') <= agent.most_digests()
    then
        keep := v_list ->> 'keep';
        digests := array(select i.digest::uuid from json_array_elements_text(v_list -> 'items') i (digest));
    end if;
    if keep is null or array_position(digests, null) is not null then
        raise exception using errcode = 'invalid_parameter_value', message = 'a reference is not one of the protocol';
    end if;
end
$function$;

comment on function agent.parse_reference(json) is 'Parses a reference to a value.';
