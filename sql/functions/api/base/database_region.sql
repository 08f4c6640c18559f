-- SPDX-License-Identifier: Apache-2.0
-- The region that the server compares with its own on each new connection: one whose database belongs to another
-- region does not serve.
-- Returns: the name of the region.
-- Locks:   none.
create or replace function agent.database_region() returns text
language sql stable security invoker set search_path = ''
as $function$
    select r.region from agent.region r
$function$;

comment on function agent.database_region() is 'The region that this database belongs to.';
