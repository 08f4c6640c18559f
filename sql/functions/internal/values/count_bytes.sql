-- SPDX-License-Identifier: Apache-2.0
-- The length of the first elements of a value.
-- p_list_ids, p_ends: as in agent.channel_value. p_count: how many elements.
-- Returns: bytes of JSON text, or a little more when the last element is one of several of a row.
-- Locks:   none.
create or replace function agent.count_bytes(
    p_deployment_id uuid,
    p_thread_id uuid,
    p_list_ids bigint[],
    p_ends integer[],
    p_count integer
) returns bigint
language plpgsql stable security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $function$
begin
    return coalesce((
        select i.end_bytes
          from agent.checkpoint_items i
         where i.deployment_id = p_deployment_id
           and i.thread_id = p_thread_id
           and i.list_id = p_list_ids[(
                select count(*) + 1
                  from unnest(p_ends) e (until)
                 where e.until < p_count)]
           and i.position < p_count
         order by i.deployment_id desc, i.thread_id desc, i.list_id desc, i.position desc
         limit 1), 0);
end
$function$;

comment on function agent.count_bytes(uuid, uuid, bigint[], integer[], integer) is
    'The length of the first elements of a value.';
