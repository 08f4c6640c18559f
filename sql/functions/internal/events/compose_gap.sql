-- SPDX-License-Identifier: Apache-2.0
-- The events that a stream sends for a final run whose own events retention has dropped: `gap`, then the
-- last state of the run, its error and its feedback addresses.
-- p_max_bytes: the longest state that the event contains; null = no limit.
-- Returns: events in order; cursor: as in agent.read_events, for a longer state. Only the last event has the number of
--          the run's last event, so that a client that is disconnected between them receives all of them again.
-- Locks:   none.
create or replace function agent.compose_gap(p_run agent.runs, p_after bigint, p_max_bytes bigint)
returns table (seq bigint, event text, data text, cursor text)
language plpgsql stable security invoker
set search_path = '' set jit = off set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $function$
begin
    return query
        select case when row_number() over (order by g.pos) = count(*) over ()
                    then p_run.last_event_seq else p_after end,
               g.event, g.data, case when g.event = 'values' then s.cursor end
          from agent.compose_result(p_run, p_max_bytes) s
         cross join lateral (values
                (1, 'gap', json_build_object(
                    'run_id', p_run.run_id,
                    'after', p_after,
                    'last', p_run.last_event_seq)::text),
                (2, 'values', s.content),
                (3, 'error', p_run.error::text),
                (4, 'feedback', case when p_run.status = 'success' then p_run.feedback::text end)
               ) g (pos, event, data)
         where g.data is not null
         order by g.pos;
end
$function$;

comment on function agent.compose_gap(agent.runs, bigint, bigint) is
    'Substitutes for the events of a run that retention has dropped.';
