-- SPDX-License-Identifier: Apache-2.0
-- The region of this database, for scripts that compare it before a server does.
-- Returns: ok with an object: region.
-- Locks:   none.
create or replace function agent.get_region(out code text, out body text)
language plpgsql stable security invoker set search_path = ''
as $function$
begin
    code := 'ok';
    body := json_build_object('region', agent.database_region());
end
$function$;

comment on function agent.get_region() is 'The region of this database, for operators.';
