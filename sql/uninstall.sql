-- SPDX-License-Identifier: Apache-2.0
-- Drops the schema: all functions, then the objects of all migrations from the last to the first, in one
-- transaction. All its data is lost.
--
--   psql -X -d DATABASE -f sql/uninstall.sql
\set ON_ERROR_STOP on
\set QUIET on
\pset tuples_only on
\pset format unaligned
set client_min_messages = warning;

begin;
set local lock_timeout = '5s';
select pg_advisory_xact_lock(hashtext('agent.install')) is null as locked \gset

\ir migrations/list.sql
\ir migrations/version.sql

do $$
declare
    v_function regprocedure;
begin
    if to_regclass('agent.runs') is not null then
        drop trigger if exists runs_final_status on agent.runs;
    end if;
    for v_function in
        select p.oid
          from pg_proc p
          join pg_namespace n on n.oid = p.pronamespace
         where n.nspname = 'agent'
    loop
        execute format('drop function %s', v_function);
    end loop;
end
$$;

\ir migrations/next_down.sql
commit;
