-- SPDX-License-Identifier: Apache-2.0
-- A list that differs from one of a checkpoint; nothing of it is read or stored.
-- p_before: the channel in the checkpoint; null for none. p_list: {"keep", "items"} of the runner protocol; elements to
-- keep that the checkpoint does not have are passed over.
-- Returns: the channel: the elements that it keeps as in a checkpoint, then those in content, if any, without brackets.
-- Locks:   none.
create or replace function agent.extend_list(
    p_deployment_id uuid,
    p_thread_id uuid,
    p_name text,
    p_before agent.channel_value,
    p_list json
) returns agent.channel_value
language plpgsql stable security invoker
-- No SET clause: it is called for each channel, by functions that have them.
as $function$
declare
    c_blanks  constant text := E' \t\r\n';
    v_keep    integer := least(
        p_before.length, case when p_list ->> 'keep' ~ '^[0-9]{1,9}$' then p_list ->> 'keep' else '0' end::integer);
    v_added   text := case when json_typeof(p_list -> 'items') = 'array' then p_list -> 'items' else '[]' end;
    v_channel agent.channel_value;
begin
    if p_before.length is not null and v_keep > 0 then
        v_channel := agent.cut_channel(p_deployment_id, p_thread_id, p_before, v_keep);
    else
        v_channel := (p_name, 0, 2, '{}', '{}', null, null);
    end if;
    v_added := btrim(substr(v_added, 2, length(v_added) - 2), c_blanks);
    v_channel.content := nullif(v_added, '');
    v_channel.bytes := v_channel.bytes + octet_length(v_added) + 1;
    return v_channel;
end
$function$;

comment on function agent.extend_list(uuid, uuid, text, agent.channel_value, json) is
    'A list that differs from one of a checkpoint.';
