-- SPDX-License-Identifier: Apache-2.0
-- The stored events of a run after a cursor, and its end: one poll of a stream. p_after -1 = from the first
-- event; p_events null = all, else only these. An event that refers to a checkpoint contains its values; if they
-- have more than p_max_bytes (null = no limit), it has U+0001 in place of their members. If the checkpoint was deleted
-- the values are null, and an event that consists of them alone is omitted: the state was never null.
-- When retention has dropped events after the cursor, agent.compose_gap substitutes for them.
-- Returns: rows in order of seq.
--          event set: an event.
--          event null, status null: nothing to send, but the cursor moved to seq (events not in p_events).
--          event null, status set: the run is final and all events were sent.
--          seq null: the run does not exist.
--          cursor: where agent.read_values begins to read such values, else null; at most one row has it.
--          more: the rows were cut off at p_limit, after such values, or near 64 KB of data; call again.
-- Bound:   64 KB of data and one event, or values of p_max_bytes, more. Held by
--          `v_bytes  integer := agent.page_bytes()`, `more := v_left <= 0 or v_bytes <= 0 or v_row.cursor is not null`
--          and `select 65536` in sql/functions/inline/events/page_bytes.sql.
-- Locks:   none.
create or replace function agent.read_events(
    p_deployment_id uuid,
    p_thread_id uuid,
    p_run_id uuid,
    p_after bigint,
    p_limit integer,
    p_events text[] default null,
    p_max_bytes bigint default null
) returns table (seq bigint, event text, data text, status text, more boolean, cursor text)
language plpgsql stable security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set enable_hashjoin = off set enable_mergejoin = off set plan_cache_mode = force_generic_plan
as $function$
declare
    v_bucket date;
    v_status text;
    v_final  boolean;
    v_last   bigint;
    v_seq    bigint := p_after;
    v_left   integer := p_limit;
    v_bytes  integer := agent.page_bytes();
    -- A bound cursor: a plain loop would fetch, and compose, 50 rows ahead.
    c_events cursor for
        select x.seq, x.event,
               x.wanted and (x.data is not null or x.checkpoint_id is null or c.state_bytes is not null) as wanted,
               case when x.checkpoint_id is null then x.data
                    else agent.compose_event(x.data, v.content) end as data,
               v.cursor
          from (
                select y.seq, y.event, y.data,
                       p_events is null or y.event = any (p_events) as wanted,
                       case when p_events is null or y.event = any (p_events)
                            then y.checkpoint_id
                       end as checkpoint_id
                  from agent.run_events y
                 where y.deployment_id = p_deployment_id
                   and y.bucket = v_bucket
                   and y.run_id = p_run_id
                   and y.seq > p_after
                 order by y.deployment_id, y.bucket, y.run_id, y.seq
                 limit p_limit
               ) x
          left join lateral (
                select k.channels, k.state_bytes
                  from agent.checkpoints k
                 where k.deployment_id = p_deployment_id
                   and k.thread_id = p_thread_id
                   and k.checkpoint_ns = ''
                   and k.checkpoint_id = x.checkpoint_id
                 limit 1
               ) c on true
         cross join lateral agent.compose_bounded_values(
                p_deployment_id, p_thread_id, x.checkpoint_id, c.channels, c.state_bytes, p_max_bytes) v;
begin
    more := false;
    select r.events_bucket, r.status, r.finished_at is not null, r.last_event_seq
      into v_bucket, v_status, v_final, v_last
      from agent.find_run(p_deployment_id, p_thread_id, p_run_id) r;
    if not found then
        return next;
        return;
    end if;

    for v_row in c_events
    loop
        v_seq := v_row.seq;
        v_left := v_left - 1;
        v_bytes := v_bytes - case
            when v_row.wanted then octet_length(v_row.event) + octet_length(v_row.data)
            else 0
        end;
        more := v_left <= 0 or v_bytes <= 0 or v_row.cursor is not null;
        if v_row.wanted or more then
            seq := v_seq;
            event := case when v_row.wanted then v_row.event end;
            data := case when v_row.wanted then v_row.data end;
            cursor := v_row.cursor;
            return next;
        end if;
        if more then
            return;
        end if;
    end loop;

    if v_final and v_seq < v_last then
        for seq, event, data, cursor in
            select g.seq, g.event, g.data, g.cursor
              from agent.runs r
             cross join lateral agent.compose_gap(r, v_seq, p_max_bytes) g
             where r.run_id = p_run_id
               and r.deployment_id is not distinct from p_deployment_id
        loop
            return next;
        end loop;
        v_seq := v_last;
    end if;
    if v_final or v_seq > coalesce(seq, p_after) then
        seq := v_seq;
        event := null;
        data := null;
        cursor := null;
        status := case when v_final then v_status end;
        return next;
    end if;
end
$function$;

comment on function agent.read_events(uuid, uuid, uuid, bigint, integer, text[], bigint) is
    'The stored events of a run after a cursor, and its end.';
