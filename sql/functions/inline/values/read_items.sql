-- SPDX-License-Identifier: Apache-2.0
-- The stored rows of a value, one ordered range of the index for each of its segments. The last row of a segment
-- is cut where the next segment begins.
-- p_list_ids, p_ends: as in agent.channel_value. p_from: the position of the first row.
-- Returns: the rows, in order.
-- Locks:   none.
create or replace function agent.read_items(
    p_deployment_id uuid,
    p_thread_id uuid,
    p_list_ids bigint[],
    p_ends integer[],
    p_from integer
) returns table ("position" integer, elements integer, end_bytes bigint, content text)
language sql stable parallel safe
-- No SET clause: it would keep the body from being inlined into FROM.
as $function$
    select x.position,
           least(x.elements, s.until - x.position),
           x.end_bytes,
           case
               when x.position + x.elements <= s.until then x.content
               -- Each is a UUID in quotes.
               when x.is_digests then left(x.content, 39 * (s.until - x.position) - 1)
               else agent.cut_elements(x.content, 0, s.until - x.position)
           end
      from unnest(p_list_ids, p_ends) s (list_id, until)
     -- Not a join: nothing above may change the order.
     cross join lateral (
            select i.position, i.elements, i.end_bytes, i.is_digests, i.content
              from agent.checkpoint_items i
             where i.deployment_id = p_deployment_id
               and i.thread_id = p_thread_id
               and i.list_id = s.list_id
               and i.position >= p_from
               and i.position < s.until
             order by i.deployment_id, i.thread_id, i.list_id, i.position
           ) x
$function$;

comment on function agent.read_items(uuid, uuid, bigint[], integer[], integer) is
    'The stored rows of a value, in order.';
