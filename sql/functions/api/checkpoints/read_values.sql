-- SPDX-License-Identifier: Apache-2.0
-- The next part of the values of a checkpoint, for a response that is sent in parts. The parts, joined, are the members
-- of the JSON object, or the value of agent.has_bare_value. A checkpoint never changes, so all parts are of one state.
-- p_cursor: that of the previous part; for the first part that of agent.get_state, agent.get_thread or agent.join_run.
-- It is CHECKPOINT.CHANNEL.POSITION.OFFSET, and .NAMESPACE for a checkpoint of a subgraph. With what a run reported of
-- the state CHECKPOINT is CHECKPOINT+MARK (agent.apply_report), so that all parts are of one report.
-- POSITION: the next element of a list. OFFSET: the number of bytes that were returned of the row that begins with this
-- element.
-- Returns: ok with the part; cursor: that of the next part, null after the last one; is_bare: whether the part is of a
--          value of agent.has_bare_value; checkpoint_not_found, also after the thread, the checkpoint or the report was
--          deleted, or the report replaced.
-- Bound:   p_max_bytes plus the names and the 256 KB of a report. A longer row is read whole for each part, which has
--          an eighth of it, at most 16 times p_max_bytes. Held by `exit when v_left <= 0` and
--          `greatest(p_max_bytes, least(16 * p_max_bytes, length(v_row) / 8))` in
--          sql/functions/internal/values/cut_row.sql.
-- Locks:   none.
create or replace function agent.read_values(
    p_deployment_id uuid,
    p_thread_id uuid,
    p_cursor text,
    p_max_bytes integer,
    out code text,
    out body text,
    out cursor text,
    out is_bare boolean
)
language plpgsql stable security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set enable_hashjoin = off set enable_mergejoin = off set plan_cache_mode = force_generic_plan
as $function$
declare
    v_key      constant text := split_part(p_cursor, '.', 1);
    v_index    integer := split_part(p_cursor, '.', 2);
    v_position integer := split_part(p_cursor, '.', 3);
    v_offset   integer := split_part(p_cursor, '.', 4);
    v_ns       constant text := coalesce(substring(p_cursor from '^(?:[^.]*[.]){4}(.*)$'), '');
    v_channels agent.channel_value[];
    v_channel  agent.channel_value;
    v_is_list  boolean;
    v_left     bigint := p_max_bytes;
    v_next     integer;
    v_elements integer;
    v_ends     integer[];
    v_text     text;
    -- Precedes the next text: the name of the channel, or the comma after an element.
    v_before   text;
begin
    v_channels := agent.find_shown_channels(p_deployment_id, p_thread_id, v_ns, v_key);
    code := case when v_channels is not null then 'ok' else 'checkpoint_not_found' end;
    is_bare := agent.has_bare_value(v_channels);
    body := case when v_channels is not null then '' end;

    while v_index <= cardinality(v_channels)
    loop
        v_channel := v_channels[v_index];
        v_is_list := v_channel.length is not null;
        -- Any other value is one row, or none when it is short.
        v_channel.length := coalesce(v_channel.length, case when v_channel.content is null then 1 else 0 end);
        v_before := case
            when v_offset > 0 then ''
            when v_position > 0 then ','
            else case
                    when is_bare then ''
                    else case when v_index > 1 then ',' else '' end || to_json(v_channel.name)::text || ':'
                end || case when v_is_list then '[' else coalesce(v_channel.content, '') end
        end;
        while v_position < v_channel.length
        loop
            v_next := case
                when v_offset > 0 then v_position
                else agent.choose_end(
                    p_deployment_id, p_thread_id, v_channel, v_position, v_left, false)
            end;
            if v_next > v_position then
                v_ends := array(select least(e.until, v_next) from unnest(v_channel.ends) e (until));
                select string_agg(i.content, ',') into v_text
                  from agent.read_items(p_deployment_id, p_thread_id, v_channel.list_ids, v_ends, v_position) i;
                v_position := v_next;
            elsif v_left < p_max_bytes then
                v_left := 0;
                exit;
            else
                select i.elements, p.part, p.until into v_elements, v_text, v_offset
                  from (
                        select r.elements, r.content
                          from agent.read_items(
                                   p_deployment_id, p_thread_id, v_channel.list_ids, v_channel.ends, v_position) r
                         limit 1
                       ) i
                 cross join lateral agent.cut_row(i.content, v_offset, p_max_bytes) p;
                if v_offset = 0 then
                    v_position := v_position + v_elements;
                end if;
            end if;
            body := body || v_before || v_text;
            v_before := case when v_offset = 0 then ',' else '' end;
            v_left := v_left - octet_length(v_text);
            exit when v_left <= 0;
        end loop;
        exit when v_position < v_channel.length;
        if v_channel.length = 0 then
            body := body || v_before;
        end if;
        if v_is_list then
            -- The last elements of a list of agent.extend_list.
            body := body || coalesce(case when v_channel.length > 0 then ',' else '' end || v_channel.content, '')
                || ']';
        end if;
        v_left := v_left - octet_length(v_channel.name) - 16 - coalesce(octet_length(v_channel.content), 0);
        v_index := v_index + 1;
        v_position := 0;
        exit when v_left <= 0;
    end loop;
    if body is null and code = 'ok' then
        raise exception using errcode = 'MA003', message = 'a row of a value is missing';
    end if;
    if v_index <= cardinality(v_channels) then
        cursor := concat_ws('.', v_key, v_index, v_position, v_offset, nullif(v_ns, ''));
    end if;
end
$function$;

comment on function agent.read_values(uuid, uuid, text, integer) is
    'The next part of the values of a checkpoint.';
