-- SPDX-License-Identifier: Apache-2.0
-- The element before which a part of a list ends, so that the part has at most p_bytes: found by bisection, since
-- rows know the length of the value up to them.
-- p_at_least_one: the part has the first row whatever its length.
-- Returns: a position from p_from, when no row fits, to the length of the list.
-- Locks:   none.
create or replace function agent.choose_end(
    p_deployment_id uuid,
    p_thread_id uuid,
    p_channel agent.channel_value,
    p_from integer,
    p_bytes bigint,
    p_at_least_one boolean
) returns integer
language plpgsql stable security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set enable_hashjoin = off set enable_mergejoin = off set plan_cache_mode = force_generic_plan
as $function$
declare
    v_fits   integer := p_from;
    v_beyond integer := p_channel.length + 1;
    v_middle integer := p_channel.length;
    v_limit  bigint := p_bytes + agent.count_bytes(
        p_deployment_id, p_thread_id, p_channel.list_ids, p_channel.ends, p_from);
begin
    while v_beyond - v_fits > 1
    loop
        if agent.count_bytes(p_deployment_id, p_thread_id, p_channel.list_ids, p_channel.ends, v_middle) <= v_limit
        then
            v_fits := v_middle;
        else
            v_beyond := v_middle;
        end if;
        v_middle := v_fits + (v_beyond - v_fits) / 2;
    end loop;
    if v_fits = p_from and p_at_least_one then
        select i.position + i.elements into v_fits
          from agent.read_items(p_deployment_id, p_thread_id, p_channel.list_ids, p_channel.ends, p_from) i
         limit 1;
    end if;
    return coalesce(v_fits, p_from);
end
$function$;

comment on function agent.choose_end(uuid, uuid, agent.channel_value, integer, bigint, boolean) is
    'The element before which a part of a list ends.';
