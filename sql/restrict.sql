-- SPDX-License-Identifier: Apache-2.0
-- Restricts the database of a server: only a role that was granted it by name may create schemas and
-- temporary objects, and the role of a server must not be able to become the owner of the schema.
-- Included by install.sql after verify.sql.
select set_config('agent.app_role', :'app_role', true) is null as set \gset

do $$
declare
    v_owner text := current_setting('agent.owner_role');
    v_app   text := current_setting('agent.app_role');
begin
    if pg_has_role(v_app, v_owner, 'member') then
        raise exception 'agent: app_role % may become the owner of the schema, %', v_app, v_owner
            using hint = 'Name a role that is neither a superuser nor the owner nor a member of it.';
    end if;
end
$$;

select format('revoke create, temporary on database %I from public', current_database()) \gexec
