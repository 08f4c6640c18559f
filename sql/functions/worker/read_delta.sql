-- SPDX-License-Identifier: Apache-2.0
-- Answers checkpoint.delta of the runner protocol, for channels whose value is not in every snapshot: from the parent
-- of a snapshot towards the root, the writes to each channel up to the nearest ancestor that has a value of it, the
-- seed, and that one's own writes.
-- p_args: {"ns", "checkpoint_id", "channels": at most 64 names}.
-- p_cursor null: the first part; else the cursor that came with the part before, ID.OPEN: the snapshot at which to
-- continue, and for each channel 1 when its seed was not found yet.
-- Returns: ok with {name: {"seed": reference, "writes": [[task_id, reference, task_path, idx], ...]}}: writes from the
--          oldest to the newest; those of a later part precede those of an earlier one. seed only where it was found.
--          cursor: of the next part, null after the last one; invalid_cursor. Raises an error of class 22 for arguments
--          of a wrong type.
-- Bound:   500 ancestors; p_max_bytes, and the writes and values of one ancestor: a list is not divided.
-- Locks:   none.
create or replace function agent.read_delta(
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
    c_ancestors constant integer := 500;
    c_channels  constant integer := 64;
    v_ns        text := coalesce(p_args ->> 'ns', '');
    v_names     text[] := array(select n.name from json_array_elements_text(p_args -> 'channels') n (name));
    v_id        uuid;
    v_open      boolean[];
    v_seeds     text[];
    v_writes    text[];
    v_row       agent.checkpoint_snapshots;
    v_channel   agent.channel_value;
    v_text      text;
    v_left      integer := p_max_bytes;
begin
    if cardinality(v_names) not between 1 and c_channels or array_position(v_names, null) is not null then
        raise exception using errcode = 'invalid_parameter_value', message = 'a delta has wrong arguments';
    end if;
    if p_cursor is null then
        v_open := array_fill(true, array[cardinality(v_names)]);
        select x.parent_checkpoint_id into v_id
          from agent.checkpoint_snapshots x
         where x.deployment_id = p_deployment_id
           and x.thread_id = p_thread_id
           and x.checkpoint_ns = v_ns
           and x.checkpoint_id = (p_args ->> 'checkpoint_id')::uuid;
    elsif p_cursor ~ ('^[0-9a-f-]{36}\.[01]{' || cardinality(v_names) || '}$') then
        v_id := left(p_cursor, 36);
        v_open := array(select o.flag = '1' from regexp_split_to_table(substr(p_cursor, 38), '') o (flag));
    else
        code := 'invalid_cursor';
        return;
    end if;
    v_seeds := array_fill(null::text, array[cardinality(v_names)]);
    v_writes := v_seeds;

    for v_depth in 1 .. c_ancestors
    loop
        exit when v_left <= 0;
        select x.* into v_row
          from agent.checkpoint_snapshots x
         where x.deployment_id = p_deployment_id
           and x.thread_id = p_thread_id
           and x.checkpoint_ns = v_ns
           and x.checkpoint_id = v_id;
        v_id := v_row.parent_checkpoint_id;
        for v_index in 1 .. cardinality(v_names)
        loop
            continue when not v_open[v_index];
            select string_agg(
                       json_build_array(
                           w.task_id, agent.render_reference(w.digests, w.is_list), w.task_path, w.idx)::text,
                       ',' order by w.task_path, w.task_id, w.idx)
              into v_text
              from agent.find_writes(
                       v_row.deployment_id, v_row.thread_id, v_row.checkpoint_ns, v_row.checkpoint_id) w
             where w.channel = v_names[v_index];
            v_writes[v_index] := concat_ws(',', v_text, v_writes[v_index]);
            v_left := v_left - coalesce(octet_length(v_text), 0);
            select * into v_channel
              from unnest(v_row.channels) c
             where c.name = v_names[v_index];
            if found and v_channel.content is null then
                select string_agg(i.content, ',') into v_text
                  from agent.read_items(
                           p_deployment_id, p_thread_id, v_channel.list_ids, v_channel.ends, 0) i;
                v_seeds[v_index] := case
                    when v_channel.length is null then v_text
                    else '{"list":{"keep":0,"items":[' || coalesce(v_text, '') || ']}}'
                end;
                v_open[v_index] := false;
                v_left := v_left - octet_length(v_seeds[v_index]);
            end if;
        end loop;
        exit when v_id is null or true <> all (v_open);
    end loop;
    if v_id is not null and true = any (v_open) then
        cursor := v_id || '.' || (
            select string_agg(case when o.flag then '1' else '0' end, '' order by o.pos)
              from unnest(v_open) with ordinality o (flag, pos));
    end if;
    code := 'ok';
    select '{' || string_agg(
               to_json(n.name)::text || ':{' || coalesce('"seed":' || v_seeds[n.pos] || ',', '') || '"writes":['
               || coalesce(v_writes[n.pos], '') || ']}', ',' order by n.pos) || '}'
      into body
      from unnest(v_names) with ordinality n (name, pos);
    body := translate(body, E'\n\r', '  ');
end
$function$;

comment on function agent.read_delta(uuid, uuid, json, text, integer) is
    'The writes to channels since the ancestors that have their values.';
