-- SPDX-License-Identifier: Apache-2.0
-- Composes the values of a checkpoint.
-- Returns: one row: the JSON object; null when p_channels is null (no checkpoint).
-- Locks:   none.
create or replace function agent.compose_values(
    p_deployment_id uuid,
    p_thread_id uuid,
    p_channels agent.channel_value[]
) returns table (content json)
language sql stable parallel safe
-- No SET clause: it would keep the body from being inlined into FROM.
as $function$
    select case when p_channels is not null then
               (
                   '{' || coalesce(string_agg(
                       to_json(c.name)::text || ':' || case
                           when c.length is not null then '[' || coalesce(e.content, '') || ']'
                           else coalesce(c.content, e.content)
                       end, ',' order by c.pos), '') || '}'
               )::json
           end
      from unnest(p_channels) with ordinality
           as c (name, length, bytes, list_ids, ends, stored_from, content, pos)
     cross join lateral (
            select string_agg(i.content, ',') as content
              from agent.read_items(p_deployment_id, p_thread_id, c.list_ids, c.ends, 0) i
           ) e
$function$;

comment on function agent.compose_values(uuid, uuid, agent.channel_value[]) is
    'The values of a checkpoint as one JSON object.';
