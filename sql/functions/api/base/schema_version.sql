-- SPDX-License-Identifier: Apache-2.0
-- The version that the server compares with its own when it connects.
-- Returns: the number of the last applied migration.
-- Locks:   none.
create or replace function agent.schema_version() returns integer
language sql stable security invoker set search_path = ''
as $function$
    select max(version) from agent.schema_version
$function$;

comment on function agent.schema_version() is 'Number of the last applied migration.';
