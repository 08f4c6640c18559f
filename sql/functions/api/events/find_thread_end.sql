-- SPDX-License-Identifier: Apache-2.0
-- The cursor at the end of a thread's events, for streams that show only later ones.
-- Returns: ok with the cursor of agent.read_thread_events; run_id is the active run, which contains the cursor,
--          null for none; thread_not_found.
-- Locks:   none.
create or replace function agent.find_thread_end(
    p_deployment_id uuid,
    p_thread_id uuid,
    out code text,
    out body text,
    out run_id uuid
)
language plpgsql stable security invoker
set search_path = '' set jit = off set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $function$
declare
    v_last   bigint;
    v_number bigint;
    v_bucket date;
begin
    select t.run_seq, t.active_run_id into v_last, run_id
      from agent.threads t
     where t.deployment_id = p_deployment_id
       and t.thread_id = p_thread_id
       and not t.is_deleted;
    if not found then
        code := 'thread_not_found';
        return;
    end if;

    code := 'ok';
    select r.thread_seq, r.events_bucket into v_number, v_bucket
      from agent.runs r
     where r.run_id = find_thread_end.run_id
       and r.deployment_id is not distinct from p_deployment_id;
    if found then
        body := v_number || '-' || agent.last_event_seq(p_deployment_id, v_bucket, run_id);
    else
        -- A call is active, which has no events, or nothing is.
        run_id := null;
        body := (v_last + 1) || '--1';
    end if;
end
$function$;

comment on function agent.find_thread_end(uuid, uuid) is 'The cursor at the end of a thread''s events.';
