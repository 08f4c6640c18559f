-- SPDX-License-Identifier: Apache-2.0
-- Refuses a schema into which another role could have put code: a view, trigger or function of that role would
-- run with the rights of this session, and "set role" does not take the rights of a superuser away. Trusted are
-- superusers, owner_role and a plain role that installs. Reads the catalog and nothing of the schema.
-- Included by install.sql and uninstall.sql before they name an object of the schema.
-- Sets the psql variable is_installed, whether the schema has the table schema_version, and the parameter
-- agent.owner_role, for blocks in which psql replaces no variables.
select set_config('agent.owner_role', :'owner_role', true) is null as set \gset

do $$
begin
    -- The owner of a database can choose the role of all sessions in it: alter database .. set role.
    if (select s.rolsuper and not c.rolsuper
          from pg_roles s, pg_roles c
         where s.rolname = session_user
           and c.rolname = current_user) then
        raise exception 'agent: superuser % runs this as role %', session_user, current_user
            using hint = 'Log in as the role that installs; after "set role" its code can become the superuser.';
    end if;
end
$$;

-- Nobody but a superuser may act as the owner: a session of the owner could put code into the schema.
do $$
declare
    v_owner  text := current_setting('agent.owner_role');
    v_reason text;
begin
    if not (select r.rolsuper from pg_roles r where r.rolname = current_user) then
        return;
    end if;
    select case
               when r.rolsuper then 'is a superuser'
               when r.rolcanlogin then 'can log in'
               else 'has the member ' || (select min(m.member::regrole::text)
                                            from pg_auth_members m
                                            join pg_roles p on p.oid = m.member
                                           where m.roleid = r.oid
                                             and not p.rolsuper)
           end
      into v_reason
      from pg_roles r
     where r.rolname = v_owner;
    if v_reason is not null then
        raise exception 'agent: role % % and cannot own the schema', v_owner, v_reason
            using hint = 'Name another role in owner_role, or log in as the role that owns the schema.';
    end if;
end
$$;

do $$
declare
    v_schema  oid := to_regnamespace('agent');
    v_trusted oid[] := array(
        select r.oid
          from pg_roles r
         where r.rolsuper
            or r.rolname in (current_user, current_setting('agent.owner_role')));
    v_object  text;
    v_owner   regrole;
begin
    with recursive part (class, id) as (
        select 'pg_namespace'::regclass::oid, v_schema
        union
        -- The objects of the schema, and the triggers, rules, defaults, constraints and indexes of its tables.
        select d.classid, d.objid
          from part p
          join pg_depend d on d.refclassid = p.class and d.refobjid = p.id
         where d.deptype in ('a', 'i', 'P', 'S')
            or p.class = 'pg_namespace'::regclass
    ), object (class, id) as (
        select p.class, p.id
          from part p
         -- Any role may create its own entry for any schema.
         where p.class <> 'pg_default_acl'::regclass
        union
        -- Code that they use: the function of a trigger, say; and the extension that made them.
        select d.refclassid, d.refobjid
          from part p
          join pg_depend d on d.classid = p.class and d.objid = p.id
         where d.refclassid in ('pg_proc'::regclass, 'pg_operator'::regclass, 'pg_type'::regclass,
                                'pg_class'::regclass, 'pg_extension'::regclass)
        union
        -- A table with a foreign key to the schema: its triggers run when a referenced row is deleted.
        select 'pg_class'::regclass, k.conrelid
          from pg_constraint k
          join pg_class c on c.oid = k.confrelid
         where c.relnamespace = v_schema
    )
    select pg_describe_object(o.class, o.id, 0), s.refobjid
      into v_object, v_owner
      from object o
      -- Objects of the superuser that initdb created have no row here.
      join pg_shdepend s on s.classid = o.class and s.objid = o.id and s.deptype = 'o'
     where s.dbid = (select b.oid from pg_database b where b.datname = current_database())
       and s.refobjid <> all (v_trusted)
     order by o.class <> 'pg_namespace'::regclass, 1
     limit 1;
    if v_object is not null then
        raise exception 'agent: % belongs to role %, which could run code in this session', v_object, v_owner
            using hint = format('Log in as role %1$s when it owns the schema; else have its objects removed.', v_owner);
    end if;
end
$$;

select exists (select
                 from pg_class c
                where c.relnamespace = to_regnamespace('agent')
                  and c.relname = 'schema_version'
                  and c.relkind = 'r') as is_installed \gset
