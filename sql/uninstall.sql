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
    v_functions text;
begin
    if to_regclass('agent.runs') is not null then
        drop trigger if exists runs_final_status on agent.runs;
    end if;
    if to_regclass('agent.region') is not null then
        drop trigger if exists region_fixed on agent.region;
    end if;
    if to_regclass('agent.accounts') is not null then
        drop trigger if exists accounts_end on agent.accounts;
    end if;
    if to_regclass('agent.api_keys') is not null then
        drop trigger if exists api_keys_end on agent.api_keys;
    end if;
    if to_regclass('agent.invitations') is not null then
        drop trigger if exists invitations_end on agent.invitations;
    end if;
    if to_regclass('agent.account_limits') is not null then
        drop trigger if exists limit_recorded on agent.account_limits;
    end if;
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
