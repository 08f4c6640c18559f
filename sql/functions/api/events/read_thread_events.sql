-- SPDX-License-Identifier: Apache-2.0
-- The events of all runs of a thread after a cursor (number of the run, number of the event), run by run in
-- the order of their creation. A snapshot suffices: only one run of a thread executes, and a run that is
-- final or deleted gets no more events, so nothing is committed before the cursor. The cursor stays at a run
-- that is not final; a later run that was cancelled before it began is shown after that one.
-- Cursors: (n, s) = the events of run n up to s were sent; (n, -1) = those of all runs before n;
--          (0, -1) = from the oldest run whose events are still stored. A cursor beyond the last run counts
--          as the end.
-- Returns: rows in order, each with the cursor after it, also as the id "n-s".
--          event set: an event of the run. p_events null = all, else only these.
--          event null, status set: the run is final; checkpoint_id is the state it left, null for none.
--          status deleted: the run at the cursor was rolled back or deleted, run_id is null.
--          event null, status null: nothing to send, but the cursor has moved.
--          id null: the thread does not exist.
--          cursor: as in agent.read_events.
--          more: the rows were cut off at p_limit, after the run with such values, or near 64 KB of data; call again.
--          When retention has dropped events after the cursor, agent.compose_gap substitutes for them; from
--          (0, -1) such runs are skipped.
-- Bound:   64 KB of data and what agent.read_events returns for one run. Held by
--          `v_bytes  integer := agent.page_bytes()`, `more := v_left <= 0 or v_bytes <= 0 or v_is_large`,
--          `exit when more` and `select 65536` in sql/functions/inline/events/page_bytes.sql.
-- Locks:   none.
create or replace function agent.read_thread_events(
    p_deployment_id uuid,
    p_thread_id uuid,
    p_after_run bigint,
    p_after_seq bigint,
    p_limit integer,
    p_events text[] default null,
    p_max_bytes bigint default null
) returns table (
    id text,
    run_id uuid,
    event text,
    data text,
    status text,
    checkpoint_id uuid,
    more boolean,
    cursor text
)
language plpgsql stable security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set enable_hashjoin = off set enable_mergejoin = off set enable_sort = off
set plan_cache_mode = force_generic_plan
as $function$
declare
    v_number bigint := p_after_run;
    v_seq    bigint := p_after_seq;
    v_left   integer := p_limit;
    v_bytes  integer := agent.page_bytes();
    v_run    agent.runs;
    v_is_large boolean := false;
    c_runs cursor for
        select r.*
          from agent.runs r
         where r.deployment_id = p_deployment_id
           and r.thread_id = p_thread_id
           and r.thread_seq >= v_number
         order by r.thread_seq;
begin
    more := false;
    select t.run_seq into v_number
      from agent.threads t
     where t.deployment_id = p_deployment_id
       and t.thread_id = p_thread_id
       and not t.is_deleted;
    if not found then
        return next;
        return;
    elsif v_number >= p_after_run then
        v_number := p_after_run;
    else
        v_number := v_number + 1;
        v_seq := -1;
    end if;

    open c_runs;
    loop
        fetch c_runs into v_run;
        if v_seq >= 0 and v_run.thread_seq is distinct from v_number then
            v_number := v_number + 1;
            v_seq := -1;
            id := v_number || '-' || v_seq;
            status := 'deleted';
            return next;
            status := null;
        end if;
        exit when v_run.run_id is null;
        v_number := v_run.thread_seq;
        continue when p_after_run = 0
                  and v_run.last_event_seq >= 0
                  and agent.last_event_seq(p_deployment_id, v_run.events_bucket, v_run.run_id) < 0;

        run_id := v_run.run_id;
        for v_seq, event, data, status, more, cursor in
            select e.seq, e.event, e.data, e.status, e.more, e.cursor
              from agent.read_events(
                       p_deployment_id, p_thread_id, v_run.run_id, v_seq, v_left, p_events, p_max_bytes) e
        loop
            v_is_large := v_is_large or cursor is not null;
            v_left := v_left - 1;
            v_bytes := v_bytes - coalesce(octet_length(event) + octet_length(data), 0);
            if status is not null then
                v_number := v_number + 1;
                v_seq := -1;
                checkpoint_id := v_run.last_checkpoint_id;
                more := v_left <= 0 or v_bytes <= 0 or v_is_large;
            end if;
            continue when event is null and status is null and not more;
            id := v_number || '-' || v_seq;
            return next;
            checkpoint_id := null;
        end loop;
        exit when more or v_run.finished_at is null;
    end loop;
    close c_runs;

    if v_number || '-' || v_seq <> coalesce(id, p_after_run || '-' || p_after_seq) then
        id := v_number || '-' || v_seq;
        event := null;
        data := null;
        status := null;
        cursor := null;
        return next;
    end if;
end
$function$;

comment on function agent.read_thread_events(uuid, uuid, bigint, bigint, integer, text[], bigint) is
    'The events of all runs of a thread after a cursor.';
