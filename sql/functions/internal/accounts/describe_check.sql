-- SPDX-License-Identifier: Apache-2.0
-- Why a row was refused. p_constraint: the check that failed, as PostgreSQL names it.
-- Returns: the comment on the check; null: it has none.
-- Locks:   none.
create or replace function agent.describe_check(p_constraint text) returns text
language plpgsql stable security invoker
set search_path = ''
as $function$
begin
    return (
        select obj_description(c.oid, 'pg_constraint')
          from pg_constraint c
         where c.connamespace = 'agent'::regnamespace
           and c.conname = p_constraint);
end
$function$;

comment on function agent.describe_check(text) is 'Why a row was refused.';
