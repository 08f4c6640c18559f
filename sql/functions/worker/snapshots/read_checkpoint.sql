-- SPDX-License-Identifier: Apache-2.0
-- Answers checkpoint.get (worker/README.md): the next part of a snapshot with its writes. The runner merges the
-- parts. {"tuple": {...} or null} comes first. "channels" are references; a list is {"list": {"keep": k, "items":
-- [...]}}, where k is the number of its elements in earlier parts. "writes" are appended to those of earlier parts, in
-- the order of task_id and idx.
-- p_args: {"ns", "checkpoint_id"}; without an id the last snapshot of the namespace (agent.find_last_snapshot).
-- p_cursor: ID.c.CHANNEL.POSITION or ID.w.COUNT.
-- Returns: ok; invalid_cursor, also when the snapshot was deleted.
-- Bound:   p_max_bytes, or the tuple, one row of digests or one write.
-- Locks:   none.
create or replace function agent.read_checkpoint(
    p_deployment_id uuid,
    p_thread_id uuid,
    p_args json,
    p_cursor text,
    p_max_bytes integer,
    out code text,
    out body text,
    out cursor text
)
language plpgsql stable security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set enable_hashjoin = off set enable_mergejoin = off set plan_cache_mode = force_generic_plan
as $function$
declare
    v_ns       text := coalesce(p_args ->> 'ns', '');
    v_id       uuid := p_args ->> 'checkpoint_id';
    v_row      agent.checkpoint_snapshots;
    v_channels text;
    v_writes   text;
    v_next     text := 'c.0.0';
    v_left     integer := p_max_bytes;
begin
    if p_cursor is not null then
        if p_cursor !~ '^[0-9a-f-]{36}\.(c\.[0-9]{1,9}\.[0-9]{1,9}|w\.[0-9]{1,9})$' then
            code := 'invalid_cursor';
            return;
        end if;
        v_id := left(p_cursor, 36);
        v_next := substr(p_cursor, 38);
    end if;
    if v_id is null then
        v_id := agent.find_last_snapshot(p_deployment_id, p_thread_id, v_ns);
    end if;
    select x.* into v_row
      from agent.checkpoint_snapshots x
     where x.deployment_id = p_deployment_id
       and x.thread_id = p_thread_id
       and x.checkpoint_ns = v_ns
       and x.checkpoint_id = v_id
       and (x.run_id in (select s.run_id from agent.find_swept_runs(p_deployment_id, p_thread_id) s)) is not true;
    if not found then
        code := case when p_cursor is null then 'ok' else 'invalid_cursor' end;
        body := case when p_cursor is null then '{"tuple":null}' end;
        return;
    end if;

    code := 'ok';
    if p_cursor is null then
        body := '"tuple":' || agent.render_snapshot(v_row);
        v_left := v_left - octet_length(body);
    end if;
    if v_next like 'c.%' and v_left > 0 then
        select r.body, r.next, r.bytes_left into v_channels, v_next, v_left
          from agent.read_references(
                   v_row, split_part(v_next, '.', 2)::integer, split_part(v_next, '.', 3)::integer, v_left) r;
        body := concat_ws(',', body, '"channels":{' || v_channels || '}');
        v_next := case when v_next is null then 'w.0' else 'c.' || v_next end;
    end if;
    if v_next like 'w.%' and v_left > 0 then
        select r.body, r.next into v_writes, v_next
          from agent.read_writes(v_row, substr(v_next, 3)::integer, v_left) r;
        body := concat_ws(',', body, '"writes":[' || v_writes || ']');
        v_next := 'w.' || v_next;
    end if;
    body := '{' || body || '}';
    cursor := v_row.checkpoint_id || '.' || v_next;
end
$function$;

comment on function agent.read_checkpoint(uuid, uuid, json, text, integer) is
    'A snapshot with its writes, in parts.';
