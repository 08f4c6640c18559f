-- SPDX-License-Identifier: Apache-2.0
-- A part of a row of a list, or of another long value: at least p_max_bytes from the byte p_offset on, or an eighth of
-- the row, at most 16 times p_max_bytes: each part costs the reading of the whole row.
-- Returns: the part, which ends with a character; until: the offset of the next one, 0 after the last one.
-- Locks:   none.
create or replace function agent.cut_row(
    p_content text,
    p_offset integer,
    p_max_bytes integer,
    out part text,
    out until integer
)
language plpgsql stable parallel safe security invoker
set search_path = ''
as $function$
declare
    v_row bytea := convert_to(p_content, 'UTF8');
begin
    until := p_offset + greatest(p_max_bytes, least(16 * p_max_bytes, length(v_row) / 8));
    -- Not within a character.
    while until < length(v_row) and get_byte(v_row, until) & 192 = 128
    loop
        until := until + 1;
    end loop;
    part := convert_from(substr(v_row, p_offset + 1, until - p_offset), 'UTF8');
    if until >= length(v_row) then
        until := 0;
    end if;
end
$function$;

comment on function agent.cut_row(text, integer, integer) is 'A part of a row of a value.';
