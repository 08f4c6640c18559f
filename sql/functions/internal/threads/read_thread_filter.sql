-- SPDX-License-Identifier: Apache-2.0
-- The conditions of a search or a count of threads, as agent.find_threads takes them; null for each that is absent.
-- p_request: the body.
-- Returns: the conditions. among: metadata if the index of metadata reads no more threads for it than it finds, else
--          null: with an array or an empty object it may read all that have the other members.
-- Locks:   none.
create or replace function agent.read_thread_filter(
    p_request json,
    out ids uuid[],
    out metadata jsonb,
    out status text,
    out excluded jsonb[],
    out among jsonb
)
language plpgsql immutable parallel safe security invoker
set search_path = ''
as $function$
begin
    ids := agent.read_words(p_request -> 'ids');
    metadata := nullif(nullif((p_request -> 'metadata')::jsonb, 'null'), '{}');
    -- The index has a key for each scalar, of the names above it: it tells neither an array from its elements, nor
    -- whether an object is there.
    among := case when not jsonb_path_exists(
                metadata, 'strict $.** ? (@.type() == "array" || @.type() == "object" && !exists (@.*))')
        then metadata
    end;
    status := p_request ->> 'status';
    excluded := case json_typeof(p_request -> 'exclude_metadata')
        when 'object' then array[(p_request -> 'exclude_metadata')::jsonb]
        when 'array' then array(
            select e.value::jsonb
              from json_array_elements(p_request -> 'exclude_metadata') e)
    end;
end
$function$;

comment on function agent.read_thread_filter(json) is 'The conditions of a search of threads.';
