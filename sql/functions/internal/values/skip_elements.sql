-- SPDX-License-Identifier: Apache-2.0
-- The new elements of a list without the first p_count ones.
-- p_count: fewer than there are. content, elements: as in agent.channel_content.
-- Returns: both for the others.
-- Locks:   none.
create or replace function agent.skip_elements(inout content text[], inout elements integer[], p_count integer)
language plpgsql immutable parallel safe security invoker
set search_path = ''
as $function$
declare
    v_row  integer := 1;
    v_left integer := p_count;
begin
    if elements is null then
        content := content[p_count + 1 :];
        return;
    end if;
    while v_left >= elements[v_row]
    loop
        v_left := v_left - elements[v_row];
        v_row := v_row + 1;
    end loop;
    content := content[v_row :];
    elements := elements[v_row :];
    if v_left > 0 then
        content[1] := agent.cut_elements(content[1], v_left, null);
        elements[1] := elements[1] - v_left;
    end if;
end
$function$;

comment on function agent.skip_elements(text[], integer[], integer) is 'New elements without the first ones.';
