-- SPDX-License-Identifier: Apache-2.0
-- Takes everything down: all functions, then the migrations from the last to the first, in one
-- transaction. All data of the schema is lost.
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

select :version >= 12 as is_applied \gset
\if :is_applied
    \echo 'agent: undo 0012_add_outbox_receiver'
    \ir migrations/0012_add_outbox_receiver.down.sql
\endif

select :version >= 11 as is_applied \gset
\if :is_applied
    \echo 'agent: undo 0011_add_run_feedback'
    \ir migrations/0011_add_run_feedback.down.sql
\endif

select :version >= 10 as is_applied \gset
\if :is_applied
    \echo 'agent: undo 0010_create_webhook_outbox'
    \ir migrations/0010_create_webhook_outbox.down.sql
\endif

select :version >= 9 as is_applied \gset
\if :is_applied
    \echo 'agent: undo 0009_create_thread_expiries'
    \ir migrations/0009_create_thread_expiries.down.sql
\endif

select :version >= 8 as is_applied \gset
\if :is_applied
    \echo 'agent: undo 0008_create_batch_types'
    \ir migrations/0008_create_batch_types.down.sql
\endif

select :version >= 7 as is_applied \gset
\if :is_applied
    \echo 'agent: undo 0007_create_usage_events'
    \ir migrations/0007_create_usage_events.down.sql
\endif

select :version >= 6 as is_applied \gset
\if :is_applied
    \echo 'agent: undo 0006_create_workers'
    \ir migrations/0006_create_workers.down.sql
\endif

select :version >= 5 as is_applied \gset
\if :is_applied
    \echo 'agent: undo 0005_create_checkpoints'
    \ir migrations/0005_create_checkpoints.down.sql
\endif

select :version >= 4 as is_applied \gset
\if :is_applied
    \echo 'agent: undo 0004_create_run_events'
    \ir migrations/0004_create_run_events.down.sql
\endif

select :version >= 3 as is_applied \gset
\if :is_applied
    \echo 'agent: undo 0003_create_runs'
    \ir migrations/0003_create_runs.down.sql
\endif

select :version >= 2 as is_applied \gset
\if :is_applied
    \echo 'agent: undo 0002_create_threads'
    \ir migrations/0002_create_threads.down.sql
\endif

select :version >= 1 as is_applied \gset
\if :is_applied
    \echo 'agent: undo 0001_create_accounts'
    \ir migrations/0001_create_accounts.down.sql
\endif
commit;
