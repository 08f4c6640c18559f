-- SPDX-License-Identifier: Apache-2.0
-- Composes the values of a checkpoint from its blobs.
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
                           when c.is_list then '[' || coalesce(e.content, '') || ']'
                           else e.content
                       end, ',' order by c.pos), '') || '}'
               )::json
           end
      from unnest(p_channels) with ordinality as c (name, is_list, digests, pos)
     cross join lateral (
            select string_agg((
                       select b.content
                         from agent.checkpoint_blobs b
                        where b.deployment_id = p_deployment_id
                          and b.thread_id = p_thread_id
                          and b.digest = d.digest), ',' order by d.pos) as content
              from unnest(c.digests) with ordinality as d (digest, pos)
           ) e
$function$;

comment on function agent.compose_values(uuid, uuid, agent.channel_value[]) is
    'The values of a checkpoint as one JSON object.';
