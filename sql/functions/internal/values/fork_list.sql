-- SPDX-License-Identifier: Apache-2.0
-- Begins a list for a channel that continues another value after its first p_keep elements, at least one, where the
-- list of that value already has other elements. So that a value has few segments, short ones at the end are copied
-- to the new list while they are not longer than what follows them, so that an element is copied ten times at most.
-- One call copies at most 1,024 elements and 512 KB.
-- p_channel: list_ids, ends and length of the other value. p_added: number of elements to be added. p_is_digests: as
-- in agent.checkpoint_items.
-- Returns: p_channel with the segments of the first p_keep elements and an empty one of the new list after them,
--          which begins at stored_from; bytes: of the first p_keep elements.
-- Locks:   the caller holds the thread.
create or replace function agent.fork_list(
    p_deployment_id uuid,
    p_thread_id uuid,
    p_channel agent.channel_value,
    p_keep integer,
    p_added integer,
    p_is_digests boolean
) returns agent.channel_value
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set enable_hashjoin = off set enable_mergejoin = off set plan_cache_mode = force_generic_plan
as $function$
declare
    c_elements constant integer := 1024;
    c_bytes    constant integer := 524288;
    v_channel  agent.channel_value := agent.cut_channel(p_deployment_id, p_thread_id, p_channel, p_keep);
    v_segments integer := cardinality(v_channel.list_ids);
    v_list_id  bigint := nextval('agent.checkpoint_list_seq');
    v_from     integer := p_keep;
    v_begin    integer;
begin
    while v_segments > 0
    loop
        v_begin := case when v_segments > 1 then v_channel.ends[v_segments - 1] else 0 end;
        exit when v_from - v_begin > p_added + p_keep - v_from
               or p_keep - v_begin > c_elements
               or v_channel.bytes - agent.count_bytes(
                      p_deployment_id, p_thread_id, v_channel.list_ids, v_channel.ends, v_begin) > c_bytes;
        v_from := v_begin;
        v_segments := v_segments - 1;
    end loop;
    if v_from < p_keep then
        insert into agent.checkpoint_items (
            deployment_id, thread_id, list_id, position, elements, end_bytes, is_digests, content)
        select p_deployment_id, p_thread_id, v_list_id, i.position, i.elements, i.end_bytes, p_is_digests, i.content
          from agent.read_items(p_deployment_id, p_thread_id, v_channel.list_ids, v_channel.ends, v_from) i;
    end if;

    v_channel.list_ids := v_channel.list_ids[: v_segments] || v_list_id;
    v_channel.ends := v_channel.ends[: v_segments] || p_keep;
    v_channel.stored_from := v_from;
    return v_channel;
end
$function$;

comment on function agent.fork_list(uuid, uuid, agent.channel_value, integer, integer, boolean) is
    'Begins a list that continues another one at an earlier element.';
