-- SPDX-License-Identifier: Apache-2.0
-- Drops the schema: all functions, then the objects of all migrations from the last to the first, in one
-- transaction. All its data is lost.
--
--   psql -X -d DATABASE -f sql/uninstall.sql [-v owner_role=ROLE]
--
-- Run by the owner of the schema, or by a superuser, with the owner_role of install.sql.
\set ON_ERROR_STOP on
\set QUIET on
\pset tuples_only on
\pset format unaligned

begin;
-- First, so that no unqualified name finds an object of another role.
set local search_path = pg_catalog, pg_temp;
set local client_min_messages = warning;
set local lock_timeout = '5s';

\if :{?owner_role}
\else
    select case when r.rolsuper then 'agent_owner' else r.rolname end as owner_role
      from pg_roles r
     where r.rolname = current_user \gset
\endif
\ir verify.sql
\ir lock.sql
\ir migrations/list.sql
\ir migrations/version.sql

\if :is_installed
do $$
declare
    v_trigger text;
    v_functions text;
begin
    -- Also those of other versions of these files, which depend on functions that are dropped here.
    for v_trigger in
        select format('%I on %s', t.tgname, t.tgrelid::regclass)
          from pg_trigger t
          join pg_class c on c.oid = t.tgrelid
          join pg_namespace n on n.oid = c.relnamespace
         where n.nspname = 'agent'
           and not t.tgisinternal
           and t.tgparentid = 0
    loop
        execute 'drop trigger ' || v_trigger;
    end loop;
    -- In one statement: some depend on others, by the default of a parameter.
    select string_agg(p.oid::regprocedure::text, ', ') into v_functions
      from pg_proc p
      join pg_namespace n on n.oid = p.pronamespace
     where n.nspname = 'agent';
    if v_functions is not null then
        execute 'drop routine ' || v_functions;
    end if;
end
$$;
\endif

\ir migrations/next_down.sql
commit;
