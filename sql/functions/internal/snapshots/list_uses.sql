-- SPDX-License-Identifier: Apache-2.0
-- The uses of digests by new rows of a list.
-- p_added: the elements to be inserted.
-- Returns: an agent.blob_use for each digest, which may repeat.
-- Locks:   none.
create or replace function agent.list_uses(p_added agent.stored_items) returns agent.blob_use[]
language plpgsql stable security invoker
set search_path = ''
as $function$
begin
    return array(
        select row(p_added.deployment_id, p_added.thread_id, d.digest, 1)::agent.blob_use
          from unnest(p_added.content) a (content)
         cross join lateral agent.split_digests(a.content) d
         where p_added.is_digests);
end
$function$;

comment on function agent.list_uses(agent.stored_items) is 'The uses of digests by new rows of a list.';
