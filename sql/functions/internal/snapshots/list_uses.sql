-- SPDX-License-Identifier: Apache-2.0
-- The uses of digests by new rows of a list: those that a snapshot adds, and those before them that
-- agent.fork_list copied.
-- p_added: the elements to be inserted. p_stored_from: the first one that was not stored before the snapshot.
-- Returns: an agent.blob_use for each digest, which may repeat.
-- Locks:   none.
create or replace function agent.list_uses(p_added agent.stored_items, p_stored_from integer) returns agent.blob_use[]
language plpgsql stable security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $function$
begin
    return array(
        select row(p_added.deployment_id, p_added.thread_id, d.digest, 1)::agent.blob_use
          from (
                select a.content
                  from unnest(p_added.content) a (content)
                 where p_added.is_digests
                union all
                select i.content
                  from agent.checkpoint_items i
                 where i.deployment_id = p_added.deployment_id
                   and i.thread_id = p_added.thread_id
                   and i.list_id = p_added.list_id
                   and i.position >= p_stored_from
                   and i.position < p_added.first
                   and p_added.is_digests
               ) c
         cross join lateral agent.split_digests(c.content) d);
end
$function$;

comment on function agent.list_uses(agent.stored_items, integer) is 'The uses of digests by new rows of a list.';
