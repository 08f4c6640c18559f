-- SPDX-License-Identifier: Apache-2.0
-- The next part of a checkpoint's values, for a runner that does not have them: in the notation of the runner
-- protocol, so that the parts, applied in order to an empty state, give the state.
-- p_cursor: null for the first part, else the cursor of the previous part, CHANNEL.POSITION.
-- Returns: rows with code ok whose bodies, joined, are {"values": {...}}. A list is {"$list": {"keep": k, "items":
--          [...]}}, where k is the number of its elements in earlier parts; any other value is unchanged, or in
--          {"$value": ...} when it could be read as notation. The last row has the cursor of the next part, null after
--          the last part. Or one row: checkpoint_not_found, also after it was deleted; invalid_cursor for a text that
--          is not a cursor of this checkpoint.
-- Bound:   p_max_bytes, or one value, element or row of short elements, and the names.
-- Locks:   none.
create or replace function agent.read_state(
    p_deployment_id uuid,
    p_thread_id uuid,
    p_checkpoint_id uuid,
    p_cursor text,
    p_max_bytes integer
) returns table (code text, body text, cursor text)
language plpgsql stable security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set enable_hashjoin = off set enable_mergejoin = off set plan_cache_mode = force_generic_plan
as $function$
declare
    -- Bytes of a row, about. As measured, a part in rows of 20 KB costs 20 % more, and in rows of 180 KB, or in one
    -- row, 33 % more.
    c_piece    constant integer := 60000;
    v_channels agent.channel_value[];
    v_channel  agent.channel_value;
    v_first    integer := 1;
    v_position integer := 0;
    v_next     integer;
    v_step     integer;
    v_ends     integer[];
    v_left     bigint := p_max_bytes;
    v_bytes    bigint;
    v_value    text;
    v_before   text := '{"values":{';
begin
    if p_cursor is not null then
        if p_cursor !~ '^[0-9]{1,9}\.[0-9]{1,9}$' then
            code := 'invalid_cursor';
            return next;
            return;
        end if;
        v_first := 1 + split_part(p_cursor, '.', 1)::integer;
        v_position := split_part(p_cursor, '.', 2)::integer;
    end if;
    select c.channels into v_channels
      from agent.checkpoints c
     where c.deployment_id = p_deployment_id
       and c.thread_id = p_thread_id
       and c.checkpoint_ns = ''
       and c.checkpoint_id = p_checkpoint_id;
    if not found then
        code := 'checkpoint_not_found';
    elsif p_cursor is not null and (
        v_first > cardinality(v_channels) or v_position > coalesce((v_channels[v_first]).length, 0)) then
        code := 'invalid_cursor';
    end if;
    if code is not null then
        return next;
        return;
    end if;

    code := 'ok';
    for v_index in v_first .. cardinality(v_channels)
    loop
        v_channel := v_channels[v_index];
        v_left := v_left - octet_length(v_channel.name) - 16;
        if v_channel.length is null then
            if v_channel.bytes > v_left and v_before = ',' then
                cursor := (v_index - 1) || '.0';
                exit;
            end if;
            v_value := coalesce(v_channel.content, (
                select i.content
                  from agent.read_items(
                           p_deployment_id, p_thread_id, v_channel.list_ids, v_channel.ends, 0) i));
            if agent.is_notation(v_value::json) then
                v_value := '{"$value":' || v_value || '}';
            end if;
            body := v_before || to_json(v_channel.name)::text || ':' || v_value;
            return next;
            v_left := v_left - v_channel.bytes;
        else
            v_next := agent.choose_end(
                p_deployment_id, p_thread_id, v_channel, v_position, v_left, v_before <> ',');
            if v_next = v_position and v_next < v_channel.length then
                cursor := (v_index - 1) || '.' || v_position;
                exit;
            end if;
            body := v_before || to_json(v_channel.name)::text || ':{"$list":{"keep":' || v_position || ',"items":[';
            return next;
            v_bytes := agent.count_bytes(p_deployment_id, p_thread_id, v_channel.list_ids, v_channel.ends, v_next)
                - agent.count_bytes(p_deployment_id, p_thread_id, v_channel.list_ids, v_channel.ends, v_position);
            -- In variables: a subquery as an argument keeps the body of read_items from being inlined.
            v_ends := array(select least(e.until, v_next) from unnest(v_channel.ends) e (until));
            v_step := greatest(1, (v_next - v_position) / (1 + v_bytes / c_piece));
            return query
                select code, case when g.first > v_position then ',' else '' end || p.content, null::text
                  from generate_series(v_position, v_next - 1, v_step) g (first)
                 cross join lateral (
                        select string_agg(i.content, ',') as content
                          from agent.read_items(
                                   p_deployment_id, p_thread_id, v_channel.list_ids, v_ends, g.first) i
                         where i.position < g.first + v_step
                       ) p
                 where p.content is not null;
            body := ']}}';
            return next;
            v_left := v_left - v_bytes;
        end if;
        v_before := ',';
        if v_next < v_channel.length then
            cursor := (v_index - 1) || '.' || v_next;
            exit;
        end if;
        v_position := 0;
    end loop;
    body := case when v_before = ',' then '}}' else v_before || '}}' end;
    return next;
end
$function$;

comment on function agent.read_state(uuid, uuid, uuid, text, integer) is
    'The next part of a checkpoint''s values, for a runner.';
