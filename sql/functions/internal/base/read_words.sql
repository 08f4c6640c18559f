-- SPDX-License-Identifier: Apache-2.0
-- A list of words of a request, which may be one word.
-- Returns: the words; null without any.
-- Locks:   none.
create or replace function agent.read_words(p_words json) returns text[]
language plpgsql immutable strict parallel safe security invoker
set search_path = ''
as $function$
begin
    return case json_typeof(p_words)
        when 'array' then array(select json_array_elements_text(p_words))
        when 'string' then array[p_words #>> '{}']
    end;
end
$function$;

comment on function agent.read_words(json) is 'A list of words of a request.';
