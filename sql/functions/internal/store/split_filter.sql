-- SPDX-License-Identifier: Apache-2.0
-- Prepares a filter of the store for a search, which applies it to many values. A member of the filter is a value that
-- the same member of an item must equal, or an object of operators ($eq, $ne, $gt, $gte, $lt, $lte) that must all hold.
-- The last four compare two numbers, or two strings by code point, and hold for nothing else. A filter has at most 32
-- conditions and 16 KB, since all are tested on each item.
-- Returns: conditions, each null for none. equal: an object of scalars that the value must contain. exact: an object
--          of objects and arrays that must equal the value's members (not tested by containment, which for arrays
--          takes time in the product of their lengths). differ: an object none of whose members may equal the
--          value's. path: the other operators, as a predicate. Raises invalid_parameter_value for another operator.
-- Locks:   none.
create or replace function agent.split_filter(
    p_filter jsonb,
    out equal jsonb,
    out exact jsonb,
    out differ jsonb,
    out path jsonpath
)
language plpgsql immutable security invoker
set search_path = ''
as $function$
declare
    c_conditions constant integer := 32;
    c_bytes      constant integer := 16384;
    v_member     record;
    v_test       record;
    v_terms      text[] := '{}';
    v_count      integer := 0;
begin
    if octet_length(p_filter::text) > c_bytes then
        raise exception using errcode = 'invalid_parameter_value', message = 'a filter is too long';
    end if;
    for v_member in
        select m.key, m.value, exists (
                   select
                     from jsonb_object_keys(case when jsonb_typeof(m.value) = 'object' then m.value else '{}' end) k
                    where starts_with(k, '$')) as has_operators
          from jsonb_each(p_filter) m
    loop
        for v_test in
            select t.key as operator, t.value, jsonb_typeof(t.value) as type
              from jsonb_each(
                       case when v_member.has_operators then v_member.value
                            else jsonb_build_object('$eq', v_member.value)
                       end) t
        loop
            v_count := v_count + 1;
            if v_count > c_conditions then
                raise exception using errcode = 'invalid_parameter_value', message = 'a filter has too many conditions';
            end if;
            case v_test.operator
                when '$eq' then
                    if v_test.type in ('object', 'array') then
                        exact := coalesce(exact, '{}') || jsonb_build_object(v_member.key, v_test.value);
                    else
                        equal := coalesce(equal, '{}') || jsonb_build_object(v_member.key, v_test.value);
                    end if;
                when '$ne' then
                    differ := coalesce(differ, '{}') || jsonb_build_object(v_member.key, v_test.value);
                when '$gt', '$gte', '$lt', '$lte' then
                    v_terms := v_terms || case
                        when v_test.type in ('number', 'string') then format(
                            '$.%s %s %s', to_json(v_member.key),
                            case v_test.operator
                                when '$gt' then '>' when '$gte' then '>=' when '$lt' then '<' else '<='
                            end,
                            v_test.value)
                        else '1 == 2'
                    end;
                else
                    raise exception using
                        errcode = 'invalid_parameter_value', message = 'a filter has an unknown operator';
            end case;
        end loop;
    end loop;
    if v_terms <> '{}' then
        path := ('strict ' || array_to_string(v_terms, ' && '))::jsonpath;
    end if;
end
$function$;

comment on function agent.split_filter(jsonb) is 'Prepares a filter of the store for a search.';
