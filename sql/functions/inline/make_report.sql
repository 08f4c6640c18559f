-- SPDX-License-Identifier: Apache-2.0
-- A run as its worker names it, by the lease that the worker holds or held. In a batch also what the worker
-- reports: p_locks_thread, more than events; p_status null, the run goes on; p_last_event_seq null, no event.
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
    'A run as its worker names it, and what the worker reports about it.';
