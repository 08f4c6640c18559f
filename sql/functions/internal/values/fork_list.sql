-- SPDX-License-Identifier: Apache-2.0
-- Begins a list for a channel that continues another value after its first p_keep elements, at least one, where the
-- list of that value already has other elements. So that a value has few segments, those at the end are copied to the
-- new list while they are at most twice as long as what follows them, or the value has many, up to p_most bytes: the
-- lengths of the others fall by halves. These are referred to, whatever their length is.
-- p_channel: list_ids, ends and length of the other value. p_added: bytes to be added. p_is_digests: as in
-- agent.checkpoint_items. p_most and p_added count 64 bytes more for each row, about what it costs, and for each
-- digest, whose uses are counted.
-- Returns: channel: p_channel with the segments of the first p_keep elements and an empty one of the new list after
--          them, which begins at stored_from; bytes: of the first p_keep elements; content, elements: the rows to be
--          copied, as in agent.channel_content; start_bytes: of the elements before them; copied: bytes, as p_most.
-- Locks:   none.
create or replace function agent.fork_list(
    p_deployment_id uuid,
    p_thread_id uuid,
    p_channel agent.channel_value,
    p_keep integer,
    p_added bigint,
    p_is_digests boolean,
    p_most bigint,
    out channel agent.channel_value,
    out content text[],
    out elements integer[],
    out start_bytes bigint,
    out copied bigint
)
language plpgsql volatile security invoker
-- No SET clause: it is called for each channel, by functions that have them.
as $function$
declare
    c_row      constant integer := 64;
    c_many     constant integer := 32;
    v_segments integer;
    v_from     integer := p_keep;
    v_begin    integer;
    v_before   bigint;
    v_length   bigint;
    v_longest  bigint;
    v_rows     record;
begin
    content := '{}';
    elements := '{}';
    channel := agent.cut_channel(p_deployment_id, p_thread_id, p_channel, p_keep);
    start_bytes := channel.bytes;
    copied := 0;
    v_segments := cardinality(channel.list_ids);
    while v_segments > 0
    loop
        v_begin := 0;
        v_before := 0;
        if v_segments > 1 then
            v_begin := channel.ends[v_segments - 1];
            v_before := agent.count_list_bytes(
                p_deployment_id, p_thread_id, channel.list_ids[v_segments - 1], v_begin);
        end if;
        v_longest := case when v_segments > c_many then p_most else 2 * (p_added + copied) end;
        v_length := start_bytes - v_before + c_row * case when p_is_digests then v_from - v_begin else 1 end;
        exit when v_length > v_longest or copied + v_length > p_most;
        -- As many rows as may be copied, and one.
        select array_agg(i.content) as content, array_agg(i.elements) as elements, count(*) as count into v_rows
          from (
                select r.content, r.elements
                  from agent.read_items(
                           p_deployment_id, p_thread_id, channel.list_ids[v_segments : v_segments],
                           channel.ends[v_segments : v_segments], v_begin) r
                 limit 1 + (p_most - copied) / c_row
               ) i;
        if not p_is_digests then
            v_length := start_bytes - v_before + c_row * v_rows.count;
            exit when v_length > v_longest or copied + v_length > p_most;
        end if;
        content := v_rows.content || content;
        elements := v_rows.elements || elements;
        copied := copied + v_length;
        v_from := v_begin;
        start_bytes := v_before;
        v_segments := v_segments - 1;
    end loop;

    channel.list_ids := channel.list_ids[: v_segments] || nextval('agent.checkpoint_list_seq');
    channel.ends := channel.ends[: v_segments] || p_keep;
    channel.stored_from := v_from;
end
$function$;

comment on function agent.fork_list(uuid, uuid, agent.channel_value, integer, bigint, boolean, bigint) is
    'Begins a list that continues another one at an earlier element.';
