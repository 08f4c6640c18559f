-- SPDX-License-Identifier: Apache-2.0
-- Whether a stream of a run's events has an end, and which event is the last one.
-- Returns: waiting while the run is not final; ok with the number of its last event (-1 for none);
--          run_not_found.
-- Locks:   none.
create or replace function agent.stream_state(
    p_account_id uuid,
    p_thread_id uuid,
    p_run_id uuid,
    out code text,
    out body text
)
language plpgsql stable security invoker
set search_path = '' set jit = off set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $function$
begin
    select case when r.finished_at is null then 'waiting' else 'ok' end, r.last_event_seq
      into code, body
      from agent.runs r
     where r.run_id = p_run_id
       and r.account_id is not distinct from p_account_id
       and r.thread_id is not distinct from p_thread_id;
    if not found then
        code := 'run_not_found';
    end if;
end
$function$;

comment on function agent.stream_state(uuid, uuid, uuid) is
    'Whether a run is final, and the number of its last event.';
