-- SPDX-License-Identifier: Apache-2.0
-- Brings a database to the current version: applies the missing migrations, then replaces all functions,
-- in one transaction. Can be repeated; a failure changes nothing. Of two first installations at the same time
-- one fails.
--
--   psql -X -d DATABASE -f sql/install.sql [-v app_role=ROLE] [-v owner_role=ROLE] [-v operator_role=ROLE]
--        [-v region=NAME]
--
-- Run by a superuser: owner_role (agent_owner) owns the schema and is created when it is missing.
-- Run by a role that may create schemas in the database: that role owns the schema, or owner_role, of
-- which it must be a member. app_role is granted the privileges of a server, operator_role those of operators; a
-- superuser creates operator_role (agent_operator) when it is missing. region (local) is that of the database, which
-- the first installation fixes.
\set ON_ERROR_STOP on
\set QUIET on
\pset tuples_only on
\pset format unaligned
begin;
-- First, so that no unqualified name finds an object of another role.
set local search_path = pg_catalog, pg_temp;
set local client_min_messages = warning;
set local lock_timeout = '5s';

do $$
begin
    if current_setting('server_version_num')::integer < 140000 then
        raise exception 'agent: PostgreSQL 14 or later is needed, this is %',
            current_setting('server_version');
    elsif current_setting('server_encoding') <> 'UTF8' then
        raise exception 'agent: the database must have encoding UTF8, it has %',
            current_setting('server_encoding');
    end if;
end
$$;

select r.rolsuper as is_superuser, r.rolname as installer
  from pg_roles r
 where r.rolname = current_user \gset
\set may_not_create false
\if :{?owner_role}
\elif :is_superuser
    \set owner_role agent_owner
\else
    \set owner_role :installer
\endif
\ir verify.sql
\ir lock.sql
\if :is_superuser
    \ir owner.sql
    \ir transfer.sql
\endif
\if :{?app_role}
    \ir restrict.sql
\endif
\if :{?operator_role}
\elif :is_superuser
    \set operator_role agent_operator
\endif
\if :{?operator_role}
    \ir operator.sql
\endif
-- The owner creates all objects from here on.
set local role :"owner_role";

\ir migrations/list.sql
\ir migrations/version.sql
select :version > max(left(m.name, 4)::integer) as is_newer
  from regexp_split_to_table(:'migrations', ' ') m (name) \gset
\if :is_newer
    do $$
    begin
        raise exception 'agent: the schema is newer than these files; install from newer files';
    end
    $$;
\endif
\if :{?region}
    \ir region.sql
\endif
\ir migrations/next_up.sql

\ir functions/inline/list.sql
\ir functions/internal/list.sql
\ir functions/api/list.sql
\ir functions/worker/list.sql
\ir functions/operator/list.sql

-- By default all roles may call a function, also the security definer one.
revoke execute on all functions in schema agent from public;
\ir operator_functions.sql
\if :{?app_role}
    \ir grants.sql
\endif
\if :{?operator_role}
    \ir operator_grants.sql
\endif

-- Retention is a setting of the supervisors: no events are dropped here.
select 'agent: partitions of run_events changed: ' || agent.maintain_partitions('100 years');
select 'agent: functions installed: ' || count(*)
  from pg_proc p
  join pg_namespace n on n.oid = p.pronamespace
 where n.nspname = 'agent';
select 'agent: schema version ' || agent.schema_version();

set local role :"installer";
\if :may_not_create
    select format('revoke create on database %I from %I', current_database(), :'owner_role') \gexec
\endif
commit;
