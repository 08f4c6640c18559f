-- SPDX-License-Identifier: Apache-2.0
-- The length of the first elements of a value.
-- p_list_ids, p_ends: as in agent.channel_value. p_count: how many elements.
-- Returns: bytes of JSON text.
-- Locks:   none.
create or replace function agent.count_bytes(
    p_deployment_id uuid,
    p_thread_id uuid,
    p_list_ids bigint[],
    p_ends integer[],
    p_count integer
) returns bigint
language plpgsql stable security invoker
-- No SET clause: it is called for each channel, by functions that have them.
as $function$
begin
    return agent.count_list_bytes(
        p_deployment_id, p_thread_id,
        p_list_ids[(
            select count(*) + 1
              from unnest(p_ends) e (until)
             where e.until < p_count)],
        p_count);
end
$function$;

comment on function agent.count_bytes(uuid, uuid, bigint[], integer[], integer) is
    'The length of the first elements of a value.';
