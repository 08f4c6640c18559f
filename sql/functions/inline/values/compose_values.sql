-- SPDX-License-Identifier: Apache-2.0
-- Composes the values of a checkpoint.
-- Returns: one row: the text of the JSON object, or of the value of agent.has_bare_value, and not json, since a cast
--          copies it twice; null when p_channels is null (no checkpoint).
-- Locks:   none.
create or replace function agent.compose_values(
    p_deployment_id uuid,
    p_thread_id uuid,
    p_channels agent.channel_value[]
) returns table (content text)
language sql stable parallel safe
-- No SET clause: it would keep the body from being inlined into FROM.
as $function$
    -- One aggregate, since each one has all of the text; without `order by`, whose sort would copy all of it. The
    -- pieces come in order nevertheless: this join and that of agent.read_items are lateral, so that they can only be
    -- nested loops over unnest(), whatever the caller's settings; the arms of the union follow each other, and the
    -- rows of a segment come from an ordered subquery. t/sql/plans.t checks the plan.
    select case when p_channels is not null then coalesce(string_agg(x.piece, ''), '{}') end
      from unnest(p_channels) with ordinality
           as c (name, length, bytes, list_ids, ends, stored_from, content, pos)
     cross join lateral (
            select case
                       when agent.has_bare_value(p_channels) then ''
                       else case when c.pos = 1 then '{' else ',' end || to_json(c.name)::text || ':'
                   end || case when c.length is not null then '[' else coalesce(c.content, '') end as piece
             union all
            select case when i.position > 0 then ',' || i.content else i.content end
              from agent.read_items(p_deployment_id, p_thread_id, c.list_ids, c.ends, 0) i
             union all
            select case
                       when c.length is null then ''
                       -- The last elements of a list of agent.extend_list.
                       else coalesce(case when c.length > 0 then ',' else '' end || c.content, '') || ']'
                   end
                   || case when c.pos < cardinality(p_channels) or agent.has_bare_value(p_channels) then '' else '}' end
           ) x
$function$;

comment on function agent.compose_values(uuid, uuid, agent.channel_value[]) is
    'The values of a checkpoint as one JSON text.';
