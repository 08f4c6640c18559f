-- SPDX-License-Identifier: Apache-2.0
-- A lease as its worker names it, with the report about its run, if any.
-- Returns: the report.
-- Locks:   none.
create or replace function agent.make_report(
    p_account_id uuid,
    p_run_id uuid,
    p_epoch integer,
    p_locks_thread boolean default true,
    p_status text default null,
    p_error json default null,
    p_last_event_seq bigint default null
) returns agent.run_report
language sql immutable parallel safe
-- No SET clause: it would keep the body from being inlined.
as $function$
    select row(
               p_account_id, p_run_id, p_epoch, p_locks_thread, p_status, p_error,
               p_last_event_seq)::agent.run_report
$function$;

comment on function agent.make_report(uuid, uuid, integer, boolean, text, json, bigint) is
    'A lease as its worker names it.';
