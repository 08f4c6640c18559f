-- SPDX-License-Identifier: Apache-2.0
-- A list that differs from one of a checkpoint, as a text; nothing of it is stored.
-- p_before: the channel in the checkpoint; null for none. p_list: {"keep", "items"} of the runner protocol; elements to
-- keep that the checkpoint does not have are passed over.
-- Returns: the JSON text of the list.
-- Locks:   none.
create or replace function agent.concat_list(
    p_deployment_id uuid,
    p_thread_id uuid,
    p_before agent.channel_value,
    p_list json
) returns text
language plpgsql stable security invoker
-- No SET clause: it is called for each channel, by functions that have them.
as $function$
declare
    c_blanks constant text := E' \t\r\n';
    v_keep   integer := least(
        p_before.length, case when p_list ->> 'keep' ~ '^[0-9]{1,9}$' then p_list ->> 'keep' else '0' end::integer);
    v_kept   text;
    v_added  text := case when json_typeof(p_list -> 'items') = 'array' then p_list -> 'items' else '[]' end;
begin
    if p_before.length is not null and v_keep > 0 then
        select string_agg(i.content, ',') into v_kept
          from agent.cut_channel(p_deployment_id, p_thread_id, p_before, v_keep) c
         cross join lateral agent.read_items(p_deployment_id, p_thread_id, c.list_ids, c.ends, 0) i;
    end if;
    v_added := btrim(substr(v_added, 2, length(v_added) - 2), c_blanks);
    return '[' || concat_ws(',', v_kept, nullif(v_added, '')) || ']';
end
$function$;

comment on function agent.concat_list(uuid, uuid, agent.channel_value, json) is
    'A list that differs from one of a checkpoint.';
