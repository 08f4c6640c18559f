-- SPDX-License-Identifier: Apache-2.0
-- Prepares the role that owns the schema, when a superuser installs: creates it, without login and without
-- privileges in the cluster. A security definer function can then change the schema, and nothing else.
-- Included by install.sql after verify.sql.
do $$
declare
    v_owner text := current_setting('agent.owner_role');
begin
    if to_regrole(quote_ident(v_owner)) is null then
        execute format('create role %I nologin nosuperuser nocreatedb nocreaterole', v_owner);
    end if;
exception
    -- A concurrent installation into another database of the cluster created it.
    when duplicate_object or unique_violation then null;
end
$$;

-- Needed for "create schema" only; install.sql revokes it.
select not has_database_privilege(:'owner_role', current_database(), 'create') as may_not_create \gset
\if :may_not_create
    select format('grant create on database %I to %I', current_database(), :'owner_role') \gexec
\endif
