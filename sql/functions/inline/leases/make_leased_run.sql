-- SPDX-License-Identifier: Apache-2.0
-- A run under the lease of a worker, to be locked or released. A batch adds what the worker reports:
-- p_locks_thread: more than events; p_status null: the run continues; p_last_event_seq null: no event;
-- p_is_failure: the worker ended it; p_value: the result of a call that changes nothing; p_batch_no, p_is_counted,
-- p_saved_event_seq: as in agent.save_batch.
-- Returns: the agent.leased_run.
-- Locks:   none.
create or replace function agent.make_leased_run(
    p_deployment_id uuid,
    p_run_id uuid,
    p_epoch integer,
    p_locks_thread boolean default true,
    p_status text default null,
    p_error json default null,
    p_last_event_seq bigint default null,
    p_is_failure boolean default false,
    p_value json default null,
    p_batch_no integer default null,
    p_is_counted boolean default false,
    p_saved_event_seq bigint default null
) returns agent.leased_run
language sql immutable parallel safe
-- No SET clause: it would keep the body from being inlined.
as $function$
    select row(
               p_deployment_id, p_run_id, p_epoch, p_locks_thread, p_status, p_error,
               p_last_event_seq, p_is_failure, p_value, p_batch_no, p_is_counted, p_saved_event_seq)::agent.leased_run
$function$;

comment on function agent.make_leased_run(
    uuid, uuid, integer, boolean, text, json, bigint, boolean, json, integer, boolean, bigint) is
    'A run under the lease of a worker, and what the worker reports about it.';
