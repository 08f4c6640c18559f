-- SPDX-License-Identifier: Apache-2.0
-- The values of a checkpoint, for one text or for parts that agent.read_values returns.
-- p_checkpoint_id, p_channels, p_state_bytes: of a row of agent.checkpoints, null for no checkpoint. p_mark: that of
-- agent.apply_report, null for none.
-- p_max_bytes: null = any size.
-- Returns: one row. content: the text of agent.compose_values; null for no checkpoint. For values of more than
--          p_max_bytes it is {U+0001}, with U+0001, which JSON text cannot contain, in place of the members, or U+0001
--          alone for a bare value; cursor is then that of the first part, else null.
-- Locks:   none.
create or replace function agent.compose_bounded_values(
    p_deployment_id uuid,
    p_thread_id uuid,
    p_checkpoint_id uuid,
    p_channels agent.channel_value[],
    p_state_bytes bigint,
    p_max_bytes bigint,
    p_mark text default null
) returns table (content text, cursor text)
language sql stable parallel safe
-- No SET clause: it would keep the body from being inlined into FROM.
as $function$
    select case
               when not b.is_large then v.content
               when agent.has_bare_value(p_channels) then E'\x01'
               else E'{\x01}'
           end,
           case when b.is_large then concat_ws('+', p_checkpoint_id, p_mark) || '.1.0.0' end
      from (
            select coalesce(p_state_bytes > p_max_bytes, false) as is_large
           ) b
     cross join lateral agent.compose_values(
            p_deployment_id, p_thread_id, case when not b.is_large then p_channels end) v
$function$;

comment on function agent.compose_bounded_values(uuid, uuid, uuid, agent.channel_value[], bigint, bigint, text) is
    'The values of a checkpoint, or the cursor of their first part.';
