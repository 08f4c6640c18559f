-- SPDX-License-Identifier: Apache-2.0
-- Whether a list of agent.checkpoint_items ends before an element.
-- Returns: true or false; null for a list without rows.
-- Locks:   none.
create or replace function agent.has_end(
    p_deployment_id uuid,
    p_thread_id uuid,
    p_list_id bigint,
    p_until integer
) returns boolean
language plpgsql stable security invoker
-- No SET clause: it is called for each channel, by functions that have them.
as $function$
begin
    return (
        select i.position + i.elements = p_until
          from agent.checkpoint_items i
         where i.deployment_id = p_deployment_id
           and i.thread_id = p_thread_id
           and i.list_id = p_list_id
         order by i.deployment_id desc, i.thread_id desc, i.list_id desc, i.position desc
         limit 1);
end
$function$;

comment on function agent.has_end(uuid, uuid, bigint, integer) is 'Whether a list ends before an element.';
