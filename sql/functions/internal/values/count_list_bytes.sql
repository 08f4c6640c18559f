-- SPDX-License-Identifier: Apache-2.0
-- The length of a value up to an element of one of its lists. Where a row has that element and one before it, it is
-- read: such rows are short (agent.checkpoint_items.elements).
-- p_until: the position after the last element that counts.
-- Returns: bytes of JSON text, 0 without a row.
-- Locks:   none.
create or replace function agent.count_list_bytes(
    p_deployment_id uuid,
    p_thread_id uuid,
    p_list_id bigint,
    p_until integer
) returns bigint
language plpgsql stable security invoker
-- No SET clause: it is called for each channel, by functions that have them.
as $function$
begin
    return coalesce((
        select case
                   when i.position + i.elements <= p_until then i.end_bytes
                   -- Each is a UUID in quotes.
                   when i.is_digests then i.end_bytes - 39 * (i.position + i.elements - p_until)
                   else i.end_bytes - octet_length(i.content)
                       + octet_length(agent.cut_elements(i.content, 0, p_until - i.position))
               end
          from agent.checkpoint_items i
         where i.deployment_id = p_deployment_id
           and i.thread_id = p_thread_id
           and i.list_id = p_list_id
           and i.position < p_until
         order by i.deployment_id desc, i.thread_id desc, i.list_id desc, i.position desc
         limit 1), 0);
end
$function$;

comment on function agent.count_list_bytes(uuid, uuid, bigint, integer) is
    'The length of a value up to an element of one of its lists.';
