-- SPDX-License-Identifier: Apache-2.0
-- Answers checkpoint.delta (worker/README.md), for channels whose value is not in every snapshot. Walks from
-- the parent of a snapshot towards the root. For each channel it returns the seed, which is the value in the nearest
-- ancestor that has one, and the writes to that ancestor and to those after it. Snapshots of deleted runs are skipped.
-- p_args: {"ns", "checkpoint_id", "channels": at most 64 names}.
-- p_cursor: ID.OPEN.wCOUNT or ID.OPEN.sPOSITION. ID: the snapshot at which to continue. OPEN: a digit for each channel,
-- 1 while its seed was not read. COUNT: the number of writes to skip. POSITION: all writes were read, and the first
-- seed to read continues at this element.
-- Returns: ok with {name: {"seed": reference, "writes": [[task_id, reference, task_path, idx], ...]}}. The writes are
--          ordered from the oldest to the newest; those of a later part precede those of an earlier one. seed is
--          present in the part that found it; for a list it is {"list": {"keep": k, "items": [...]}}, where k is the
--          number of its elements in earlier parts. invalid_cursor, also when the snapshot was deleted.
-- Bound:   500 ancestors; 20,000 examined channels and writes, plus those of one ancestor; p_max_bytes plus one write
--          or one row of digests.
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
    c_examined  constant integer := 20000;
    -- The cost of an ancestor without its channels and writes, as a number of channels.
    c_ancestor  constant integer := 20;
    v_ns        text := coalesce(p_args ->> 'ns', '');
    v_names     text[] := array(select n.name from json_array_elements_text(p_args -> 'channels') n (name));
    v_id        uuid;
    v_parent    uuid;
    -- The channels whose seed was not read yet: name -> position in v_names.
    v_open      jsonb;
    v_next      text;
    v_seeds     text[];
    v_texts     text[] := '{}';
    v_owners    integer[] := '{}';
    v_found     agent.channel_value[];
    v_channel   agent.channel_value;
    v_owner     integer;
    v_text      text;
    v_from      integer;
    v_seed      record;
    v_count     integer;
    v_examined  integer := 0;
    v_left      integer := p_max_bytes;
begin
    select d.checkpoint_id, d.open, d.next into v_id, v_open, v_next
      from agent.open_delta(
               p_deployment_id, p_thread_id, v_ns, (p_args ->> 'checkpoint_id')::uuid, v_names, p_cursor) d;
    if v_open is null then
        code := 'invalid_cursor';
        return;
    end if;
    v_seeds := array_fill(null::text, array[cardinality(v_names)]);

    <<ancestors>>
    for v_depth in 1 .. c_ancestors
    loop
        exit when v_id is null or v_open = '{}' or v_left <= 0 or v_examined >= c_examined;
        select s.parent_checkpoint_id, s.channels, s.writes, v_examined + c_ancestor + s.examined
          into v_parent, v_found, v_count, v_examined
          from agent.find_delta_step(p_deployment_id, p_thread_id, v_ns, v_id, v_open) s;
        if not found then
            v_id := null;
            exit;
        end if;

        v_from := substr(v_next, 2);
        if v_next like 'w%' and v_count > 0 then
            for v_owner, v_text in
                select (v_open ->> w.channel)::integer,
                       json_build_array(
                           w.task_id, agent.render_reference(w.digests, w.is_list), w.task_path, w.idx)::text
                  from (
                        select x.*
                          from agent.find_writes(p_deployment_id, p_thread_id, v_ns, v_id) x
                         where v_open ? x.channel
                         order by x.task_path desc, x.task_id desc, x.idx desc
                        offset v_from
                       ) w
            loop
                if v_left <= 0 then
                    v_next := 'w' || v_from;
                    exit ancestors;
                end if;
                v_texts := v_texts || v_text;
                v_owners := v_owners || v_owner;
                v_from := v_from + 1;
                v_left := v_left - octet_length(v_text);
            end loop;
        end if;
        v_from := case when v_next like 'w%' then 0 else v_from end;
        foreach v_channel in array v_found
        loop
            v_next := 's' || v_from;
            exit ancestors when v_left <= 0;
            v_seed := agent.read_reference(
                p_deployment_id, p_thread_id, v_channel, v_from, v_left, v_left = p_max_bytes);
            exit ancestors when v_seed.until = v_from and v_seed.until < v_channel.length;
            v_seeds[(v_open ->> v_channel.name)::integer] := v_seed.body;
            v_left := v_left - v_seed.bytes - 64;
            v_next := 's' || v_seed.until;
            exit ancestors when v_seed.until < v_channel.length;
            v_open := v_open - v_channel.name;
            v_from := 0;
        end loop;
        v_next := 'w0';
        v_id := v_parent;
    end loop;

    if v_id is not null and v_open <> '{}' then
        cursor := v_id || '.' || (
            select string_agg(case when v_open ? n.name then '1' else '0' end, '' order by n.pos)
              from unnest(v_names) with ordinality n (name, pos)) || '.' || v_next;
    end if;
    code := 'ok';
    body := agent.compose_delta(v_names, v_seeds, v_texts, v_owners);
end
$function$;

comment on function agent.read_delta(uuid, uuid, json, text, integer) is
    'The writes to channels since the ancestors that have their values.';
