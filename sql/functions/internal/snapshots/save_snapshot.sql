-- SPDX-License-Identifier: Apache-2.0
-- Saves a snapshot that a graph's library put. An existing snapshot changes nothing. Channels that it does not name
-- are those of its parent; the others are stored as differences from them (agent.derive_channel).
-- Returns: the uses of blobs that it adds. Raises an error of class 22 when the parent is not a snapshot of the
--          namespace, for an id of one that is being deleted, for references that are wrong, and beyond 65,536 digests,
--          1,024 channels, 64 KB of names, 2,048 segments of lists or the limits of agent.check_record.
-- Bound:   what it sends, and copies of four times as much and 24 KB. Held by `bigint := 24576` and `v_may_copy + 4`.
-- Locks:   the caller holds the thread and the queue row.
create or replace function agent.save_snapshot(
    p_lease agent.run_queue,
    p_put agent.batch_record
) returns agent.blob_use[]
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $function$
declare
    c_name_bytes constant integer := 65536;
    c_per_row    constant integer := 256;
    v_digests    integer := 0;
    v_may_copy   bigint := 24576;
    v_parents    agent.channel_value[] := '{}';
    v_values     agent.channel_value[];
    v_names      jsonb;
    v_name       text;
    v_reference  json;
    v_parsed     record;
    v_new        agent.channel_content;
    v_derived    record;
    v_match      integer;
    v_uses       agent.blob_use[] := '{}';
    v_is_stored  boolean;
begin
    select (x.run_id in (
               select s.run_id
                 from agent.find_swept_runs(p_lease.deployment_id, p_lease.thread_id) s)) is not true
      into v_is_stored
      from agent.checkpoint_snapshots x
     where x.deployment_id = p_lease.deployment_id
       and x.thread_id = p_lease.thread_id
       and x.checkpoint_ns = p_put.checkpoint_ns
       and x.checkpoint_id = p_put.checkpoint_id;
    if v_is_stored then
        return v_uses;
    elsif not v_is_stored then
        raise exception using errcode = 'invalid_parameter_value',
            message = 'a put has the id of a snapshot that is being deleted';
    end if;
    perform agent.check_record(p_put);
    if p_put.parent is not null then
        select array(
                   select row(c.name, c.length, c.bytes, c.list_ids, c.ends, null, c.content)::agent.channel_value
                     from unnest(x.channels) c)
          into v_parents
          from agent.checkpoint_snapshots x
         where x.deployment_id = p_lease.deployment_id
           and x.thread_id = p_lease.thread_id
           and x.checkpoint_ns = p_put.checkpoint_ns
           and x.checkpoint_id = p_put.parent
           and (x.run_id in (
                select s.run_id
                  from agent.find_swept_runs(p_lease.deployment_id, p_lease.thread_id) s)) is not true;
        if not found then
            raise exception using errcode = 'invalid_parameter_value',
                message = 'the parent of a put is not a snapshot of the thread';
        end if;
    end if;
    v_values := v_parents;
    v_names := agent.map_channels(v_parents);

    for v_name, v_reference in select c.key, c.value from json_each(p_put.channels) c
    loop
        v_parsed := agent.parse_reference(v_reference);
        v_digests := v_digests + cardinality(v_parsed.digests);
        if v_digests > agent.most_digests() then
            raise exception using errcode = 'invalid_parameter_value', message = 'a put names too many values';
        end if;
        v_new.name := v_name;
        v_new.kind := case when v_parsed.keep is null then 'value' else 'list' end;
        v_new.keep := v_parsed.keep;
        v_new.length := case when v_parsed.keep is not null then cardinality(v_parsed.digests) end;
        v_new.is_digests := v_new.length is not null or v_parsed.digests <> '{}';
        v_new.elements := array(
            select least(c_per_row, cardinality(v_parsed.digests) - n)
              from generate_series(0, cardinality(v_parsed.digests) - 1, c_per_row) n);
        v_new.content := case when v_new.is_digests then array(
            select '"' || array_to_string(v_parsed.digests[n + 1 : n + c_per_row], '","') || '"'
              from generate_series(0, cardinality(v_parsed.digests) - 1, c_per_row) n) else array['null'] end;
        v_new.bytes := octet_length(array_to_string(v_new.content, ',')) + 1;
        v_match := v_names ->> v_name;
        v_may_copy := v_may_copy + 4 * (octet_length(v_name) + v_new.bytes);
        v_derived := agent.derive_channel(
            p_lease.deployment_id, p_lease.thread_id, v_parents[v_match], v_new, null, v_may_copy);
        v_may_copy := v_derived.may_copy;
        if (v_derived.added).list_id is not null then
            v_uses := v_uses || agent.list_uses(v_derived.added);
            perform agent.insert_items(array[v_derived.added]);
        end if;
        v_values[coalesce(v_match, cardinality(v_values) + 1)] := v_derived.channel;
    end loop;
    if cardinality(v_values) > agent.most_channels()
        or (select sum(octet_length(c.name)) from unnest(v_values) c) > c_name_bytes
    then
        raise exception using errcode = 'MA012', message = 'a snapshot has too many channels, or names of them';
    elsif (select sum(cardinality(c.list_ids)) from unnest(v_values) c) > agent.most_segments() then
        raise exception using errcode = 'MA013', message = 'a snapshot has too many segments of lists';
    end if;

    insert into agent.checkpoint_snapshots (
        deployment_id, thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, run_id, channels, checkpoint,
        metadata, created_at, epoch)
    values (
        p_lease.deployment_id, p_lease.thread_id, p_put.checkpoint_ns, p_put.checkpoint_id, p_put.parent,
        p_lease.run_id, v_values, p_put.checkpoint, p_put.metadata::jsonb, agent.now(), p_lease.epoch);
    return v_uses;
end
$function$;

comment on function agent.save_snapshot(agent.run_queue, agent.batch_record) is
    'Saves a snapshot that a graph''s library put.';
