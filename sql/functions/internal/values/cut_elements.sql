-- SPDX-License-Identifier: Apache-2.0
-- Some of the JSON texts that a text joins by commas: p_count after the first p_skip ones; null: all.
-- Returns: the texts, joined by commas.
-- Locks:   none.
create or replace function agent.cut_elements(p_content text, p_skip integer, p_count integer) returns text
language plpgsql immutable parallel safe security invoker
set search_path = ''
as $function$
begin
    return (
        select string_agg(e.value::text, ',')
          from (
                select x.value
                  from json_array_elements(('[' || p_content || ']')::json) x
                 limit p_count offset p_skip
               ) e);
end
$function$;

comment on function agent.cut_elements(text, integer, integer) is 'Some of the JSON texts that a text joins.';
