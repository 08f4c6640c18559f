-- SPDX-License-Identifier: Apache-2.0
-- Saves checkpoints of leased runs and moves the heads of their threads. A checkpoint that exists already
-- changes nothing. Channels are stored as differences from those of the parent (agent.derive_channel): the last
-- step of a run is the parent of the next one, so that the steps of a batch are derived from each other in memory.
-- Steps in a row that continue the same checkpoint read its channels once, of which each may have few.
-- Returns: nothing. Raises an error of class 22 as agent.derive_channel, and for a checkpoint with the id of one that
--          is being deleted; MA011 for a state of more than 34 MiB, MA012 for too many channels or more than 64 KB of
--          names, MA013 for too many segments of lists.
-- Bound:   1,024 channels of a checkpoint, of which one costs about 10 us, a list 40 us, 90 us when it is cut within a
--          row of short elements. Held by
--          `> agent.most_channels()` and `select 1024` in sql/functions/inline/values/most_channels.sql.
--          Copies of elements: 24 KB, and four times what was sent. Held by `v_may_copy := 24576` and `v_may_copy + 4`.
-- Locks:   the caller holds the threads and the queue rows.
create or replace function agent.save_checkpoints(
    p_worker_id bigint,
    p_checkpoints agent.batch_checkpoint[]
) returns void
language plpgsql volatile security invoker
-- No SET clause: agent.save_batch has them.
as $function$
declare
    c_state_bytes constant bigint := 35651584;
    c_name_bytes  constant integer := 65536;
    v_now         timestamptz := agent.now();
    v_new         record;
    v_rows        agent.checkpoints[] := '{}';
    v_items       agent.stored_items[] := '{}';
    v_parent      agent.channel_value;
    v_parents     agent.channel_value[];
    v_channel     agent.channel_content;
    v_values      agent.channel_value[];
    v_derived     record;
    v_names       jsonb;
    v_tips        boolean[];
    v_known       boolean[];
    v_bytes       bigint;
    v_may_copy    bigint;
    v_name_bytes  integer;
    v_parent_id   uuid;
    v_index       integer;
    v_match       integer;
begin
    for v_new in select c.* from agent.find_new_checkpoints(p_worker_id, p_checkpoints) c
    loop
        if cardinality(v_new.channels) > agent.most_channels() then
            raise exception using errcode = 'MA012', message = 'a checkpoint has too many channels';
        end if;
        v_known := null;
        if v_new.previous = v_new.parent_checkpoint_id then
            v_parents := v_values;
            v_known := v_tips;
            v_names := null;
        elsif v_new.previous is null then
            v_parents := v_new.parent;
            v_names := null;
        elsif v_new.parent_checkpoint_id is distinct from v_parent_id then
            perform agent.insert_checkpoints(v_rows, v_items);
            v_rows := '{}';
            v_items := '{}';
            select x.channels into v_parents
              from agent.find_checkpoint(
                       v_new.deployment_id, v_new.thread_id, v_new.checkpoint_ns, v_new.parent_checkpoint_id) x;
            v_names := null;
        else
            -- Where the lists end now is read from the table.
            perform agent.insert_items(v_items);
            v_items := '{}';
        end if;
        v_parent_id := v_new.parent_checkpoint_id;

        v_bytes := 0;
        v_may_copy := 24576;
        v_name_bytes := 0;
        v_values := '{}';
        v_tips := '{}';
        v_index := 0;
        foreach v_channel in array v_new.channels
        loop
            v_index := v_index + 1;
            v_name_bytes := v_name_bytes + octet_length(v_channel.name);
            v_match := v_index;
            if (v_parents[v_match]).name is distinct from v_channel.name then
                if v_names is null then
                    v_names := agent.map_channels(v_parents);
                end if;
                v_match := (v_names ->> v_channel.name)::integer;
            end if;
            v_parent := v_parents[v_match];
            -- Elements of the parent that are to be compared or copied must be in the table.
            if cardinality(v_items) > 0 and (
                v_channel.kind = 'array' or v_channel.keep < v_parent.length or v_channel.bytes = v_parent.bytes) then
                perform agent.insert_items(v_items);
                v_items := '{}';
            end if;
            v_may_copy := v_may_copy + 4 * (octet_length(v_channel.name) + v_channel.bytes);
            v_derived := agent.derive_channel(
                v_new.deployment_id, v_new.thread_id, v_parent, v_channel, v_known[v_match], v_may_copy);
            v_may_copy := v_derived.may_copy;
            v_values := v_values || v_derived.channel;
            v_bytes := v_bytes + (v_derived.channel).bytes;
            v_tips := v_tips || v_derived.is_tip;
            if (v_derived.added).list_id is not null then
                v_items := v_items || v_derived.added;
            end if;
        end loop;
        -- Each reader composes it as a whole; a checkpoint that continues it, however short, reads its channels.
        if v_bytes > c_state_bytes then
            raise exception using errcode = 'MA011', message = 'a state has more than 34 MiB';
        elsif v_name_bytes > c_name_bytes then
            raise exception using errcode = 'MA012', message = 'a state has more than 64 KB of names of channels';
        elsif (select sum(cardinality(c.list_ids)) from unnest(v_values) c) > agent.most_segments() then
            raise exception using errcode = 'MA013', message = 'a state has too many segments of lists';
        end if;
        v_rows := v_rows || row(
            v_new.deployment_id, v_new.thread_id, v_new.checkpoint_ns, v_new.checkpoint_id, v_new.parent_checkpoint_id,
            v_new.run_id, v_values, v_new.next, v_new.tasks, v_new.metadata, v_new.format, v_bytes,
            v_now)::agent.checkpoints;
    end loop;
    perform agent.insert_checkpoints(v_rows, v_items);
end
$function$;

comment on function agent.save_checkpoints(bigint, agent.batch_checkpoint[]) is
    'Saves checkpoints of leased runs.';
