-- SPDX-License-Identifier: Apache-2.0
-- A list cut after its first p_keep elements.
-- Returns: p_channel with length, bytes and segments of those elements.
-- Locks:   none.
create or replace function agent.cut_channel(
    p_deployment_id uuid,
    p_thread_id uuid,
    p_channel agent.channel_value,
    p_keep integer
) returns agent.channel_value
language plpgsql stable security invoker
-- No SET clause: it is called for each channel, by functions that have them.
as $function$
declare
    v_channel  agent.channel_value := p_channel;
    v_segments integer;
begin
    if p_keep < p_channel.length then
        v_segments := case when p_keep = 0 then 0 else (
            select count(*) + 1
              from unnest(p_channel.ends) e (until)
             where e.until < p_keep) end;
        v_channel.bytes := agent.count_list_bytes(
            p_deployment_id, p_thread_id, p_channel.list_ids[v_segments], p_keep);
        v_channel.list_ids := p_channel.list_ids[: v_segments];
        v_channel.ends := p_channel.ends[: v_segments - 1];
        if v_segments > 0 then
            v_channel.ends := v_channel.ends || p_keep;
        end if;
    end if;
    v_channel.length := p_keep;
    v_channel.stored_from := null;
    return v_channel;
end
$function$;

comment on function agent.cut_channel(uuid, uuid, agent.channel_value, integer) is
    'A list cut after its first elements.';
