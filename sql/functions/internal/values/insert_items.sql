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
    select i.deployment_id, i.thread_id, i.list_id, i.first + e.until - e.elements, e.elements,
           i.start_bytes + e.bytes, i.is_digests, e.content
      from unnest(p_items) i
     cross join lateral (
            select c.content, coalesce(c.elements, 1) as elements,
                   sum(coalesce(c.elements, 1)) over (rows unbounded preceding)::integer as until,
                   sum(octet_length(c.content) + 1) over (rows unbounded preceding) as bytes
              from unnest(i.content, i.elements) c (content, elements)
           ) e;
end
$function$;

comment on function agent.insert_items(agent.stored_items[]) is 'Inserts new elements of lists.';
