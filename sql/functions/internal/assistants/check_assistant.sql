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
begin
    return case
        when octet_length(p_assistant.config::text) > 65536 then '/config: expected at most 65536 bytes of JSON.'
        when octet_length(p_assistant.context::text) > 65536 then '/context: expected at most 65536 bytes of JSON.'
        when (select count(*) from jsonb_object_keys(p_assistant.metadata)) > 64 then
            '/metadata: expected at most 64 keys, those of the assistant included.'
    end;
end
$function$;

comment on function agent.check_assistant(agent.assistants) is 'Limits of an assistant.';
