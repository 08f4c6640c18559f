-- SPDX-License-Identifier: Apache-2.0
-- Limits of an assistant, which is written into each of its runs: 64 KB of config, as much context and, as in
-- a request, 64 keys of metadata. Counted as they are stored: the text of 1e300 becomes 300 digits, and an
-- update adds to the metadata.
-- Returns: null, or the detail of an error.
-- Locks:   none.
create or replace function agent.check_assistant(p_assistant agent.assistants) returns text
language plpgsql immutable security invoker
set search_path = ''
as $function$
declare
    c_bytes constant integer := 65536;
begin
    return case
        when octet_length(p_assistant.config::text) > c_bytes then
            format('/config: expected at most %s bytes of JSON.', c_bytes)
        when octet_length(p_assistant.context::text) > c_bytes then
            format('/context: expected at most %s bytes of JSON.', c_bytes)
        when (select count(*) from jsonb_object_keys(p_assistant.metadata)) > 64 then
            '/metadata: expected at most 64 keys, those of the assistant included.'
    end;
end
$function$;

comment on function agent.check_assistant(agent.assistants) is 'Limits of an assistant.';
