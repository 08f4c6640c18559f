-- SPDX-License-Identifier: Apache-2.0
-- Prepares the role that owns the schema, when a superuser installs: creates it, without login and without
-- privileges in the cluster, and transfers objects of other owners to it. A security definer function can
-- then change the schema, and nothing else. Included by install.sql.
select set_config('agent.owner_role', :'owner_role', true) is null as set \gset

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

do $$
declare
    v_owner text := current_setting('agent.owner_role');
begin
    if (select r.rolsuper from pg_roles r where r.rolname = v_owner) then
        raise exception 'agent: role % is a superuser and cannot own the schema', v_owner;
    end if;
end
$$;

-- Needed for "create schema" only; install.sql revokes it.
select not has_database_privilege(:'owner_role', current_database(), 'create') as may_not_create \gset
\if :may_not_create
    select format('grant create on database %I to %I', current_database(), :'owner_role') \gexec
\endif

do $$
declare
    v_owner   regrole := quote_ident(current_setting('agent.owner_role'))::regrole;
    v_command text;
begin
    for v_command in
        with object (kind, name, owner) as (
            select 'schema', n.oid::regnamespace::text, n.nspowner
              from pg_namespace n
             where n.nspname = 'agent'
            union all
            select case c.relkind when 'S' then 'sequence' when 'c' then 'type' else 'table' end,
                   c.oid::regclass::text, c.relowner
              from pg_class c
             where c.relnamespace = to_regnamespace('agent')
               and c.relkind in ('r', 'p', 'S', 'c')
               -- The sequence of a column changes its owner with the table.
               and not exists (select
                                 from pg_depend d
                                where c.relkind = 'S'
                                  and d.classid = 'pg_class'::regclass
                                  and d.objid = c.oid
                                  and d.deptype in ('a', 'i'))
            union all
            select 'function', p.oid::regprocedure::text, p.proowner
              from pg_proc p
             where p.pronamespace = to_regnamespace('agent')
        )
        select format('alter %s %s owner to %s', o.kind, o.name, v_owner)
          from object o
         where o.owner <> v_owner
    loop
        execute v_command;
    end loop;
end
$$;
