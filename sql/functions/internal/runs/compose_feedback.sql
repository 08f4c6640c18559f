-- SPDX-License-Identifier: Apache-2.0
-- The feedback addresses of a run: p_url with {run_id} and {key} filled in, one address per key. Of a key,
-- only the unreserved characters of RFC 3986 are kept; every other byte is percent-encoded.
-- Returns: {key: address, ...}; null without an address or keys.
-- Locks:   none.
create or replace function agent.compose_feedback(p_url text, p_run_id uuid, p_keys json) returns json
language plpgsql immutable parallel safe security invoker
-- No SET clause: it is called for each run, by functions that have them.
as $function$
begin
    if p_url is null or json_array_length(p_keys) is null then
        return null;
    end if;
    return (
        select json_object_agg(
                   k.key,
                   replace(replace(p_url, '{run_id}', p_run_id::text), '{key}', e.text)
                   order by k.pos)
          from (
                select x.key, min(x.pos) as pos
                  from json_array_elements_text(p_keys) with ordinality as x (key, pos)
                 group by x.key
               ) k
         cross join lateral (
                select coalesce(string_agg(
                           case
                               when c.character ~ '^[A-Za-z0-9._~-]$' then c.character
                               else regexp_replace(
                                   upper(encode(convert_to(c.character, 'UTF8'), 'hex')),
                                   '(..)', E'%\\1', 'g')
                           end, '' order by c.pos), '') as text
                  from regexp_split_to_table(k.key, '') with ordinality as c (character, pos)
               ) e);
end
$function$;

comment on function agent.compose_feedback(text, uuid, json) is 'The feedback addresses of a run.';
