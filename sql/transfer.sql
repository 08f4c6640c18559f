-- SPDX-License-Identifier: Apache-2.0
-- Transfers the objects of the schema that a superuser owns to owner_role. Included by install.sql when a
-- superuser installs, after verify.sql.
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
            select 'routine', p.oid::regprocedure::text, p.proowner
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
