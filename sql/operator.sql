-- SPDX-License-Identifier: Apache-2.0
-- Prepares the role of operators, who manage accounts and API keys: a superuser who installs creates it, without
-- login; persons who operate the platform are made members of it. It has no way to the data of threads: it must not
-- be able to become the owner of the schema or the role of a server, nor that role an operator.
-- Included by install.sql after verify.sql.
\if :{?app_role}
    \set server_role :app_role
\else
    \set server_role ''
\endif
select set_config('agent.operator_role', :'operator_role', true) is null
    or set_config('agent.app_role', :'server_role', true) is null as set \gset

do $$
declare
    v_owner    text := current_setting('agent.owner_role');
    v_operator text := current_setting('agent.operator_role');
    v_app      text := nullif(current_setting('agent.app_role'), '');
    v_reason   text;
begin
    if to_regrole(quote_ident(v_operator)) is null
       and (select r.rolsuper from pg_roles r where r.rolname = current_user) then
        begin
            execute format('create role %I nologin nosuperuser nocreatedb nocreaterole', v_operator);
        exception
            -- A concurrent installation into another database of the cluster created it.
            when duplicate_object or unique_violation then null;
        end;
    end if;
    v_reason := case
        when (select r.rolsuper from pg_roles r where r.rolname = v_operator) then 'is a superuser'
        when pg_has_role(v_operator, v_owner, 'member') then 'may become the owner of the schema, ' || v_owner
        when pg_has_role(v_operator, v_app, 'member') then 'may become app_role ' || v_app
    end;
    if v_reason is not null then
        raise exception 'agent: operator_role % %', v_operator, v_reason
            using hint = 'Name a role that only manages accounts and API keys.';
    end if;
    if pg_has_role(v_app, v_operator, 'member') then
        raise exception 'agent: app_role % may become operator_role %', v_app, v_operator
            using hint = format('Revoke it: revoke %I from %I.', v_operator, v_app);
    end if;
end
$$;
