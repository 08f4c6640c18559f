-- SPDX-License-Identifier: Apache-2.0
-- Inserts new elements of lists.
-- Returns: nothing.
-- Locks:   the caller holds the threads.
create or replace function agent.insert_items(p_items agent.stored_items[]) returns void
language plpgsql volatile security invoker
-- No SET clause: it is called for each batch, by functions that have them.
as $function$
begin
    insert into agent.checkpoint_items (
        deployment_id, thread_id, list_id, position, elements, end_bytes, is_digests, content)
    select i.deployment_id, i.thread_id, i.list_id, i.first + i.per_row * (e.pos - 1),
           least(i.per_row, i.length - i.per_row * (e.pos - 1)), i.start_bytes + e.bytes, i.is_digests, e.content
      from unnest(p_items) i
     cross join lateral (
            select c.pos::integer, c.content,
                   sum(octet_length(c.content) + 1) over (rows unbounded preceding) as bytes
              from unnest(i.content) with ordinality c (content, pos)
           ) e;
end
$function$;

comment on function agent.insert_items(agent.stored_items[]) is 'Inserts new elements of lists.';
