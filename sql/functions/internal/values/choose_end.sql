-- SPDX-License-Identifier: Apache-2.0
-- The element before which a part of a list ends: the largest position whose part has at most p_bytes; at most a
-- sixteenth less when more follows. Each row has the length of the value up to it, so that few are read.
-- p_at_least_one: the part has the first row whatever its length.
-- Returns: a position from p_from, when no row fits, to the length of the list, and never within a row.
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
    -- Four interpolation steps, then bisection: it ends whatever the lengths of the elements are.
    c_guesses constant integer := 4;
    v_steps   integer := 0;
    v_fits    integer := p_from;
    v_bytes   bigint := 0;
    v_first   bigint := agent.count_bytes(
        p_deployment_id, p_thread_id, p_channel.list_ids, p_channel.ends, p_from);
    -- A part that is as long as this is long enough.
    v_enough  bigint := p_bytes - p_bytes / 16;
    v_beyond  integer := p_channel.length + 1;
    v_excess  bigint;
    v_middle  integer := p_channel.length;
    v_row     record;
begin
    while v_beyond - v_fits > 1
    loop
        select i.position, least(i.position + i.elements, s.until) as until, i.end_bytes - v_first as bytes
          into v_row
          from unnest(p_channel.list_ids, p_channel.ends) s (list_id, until)
         cross join lateral (
                select x.position, x.elements, x.end_bytes
                  from agent.checkpoint_items x
                 where x.deployment_id = p_deployment_id
                   and x.thread_id = p_thread_id
                   and x.list_id = s.list_id
                   and x.position < v_middle
                 order by x.deployment_id desc, x.thread_id desc, x.list_id desc, x.position desc
                 limit 1
               ) i
         where s.until >= v_middle
         limit 1;
        if v_row.bytes > p_bytes and not (p_at_least_one and v_row.position <= p_from) then
            v_beyond := v_row.position + 1;
            v_excess := v_row.bytes;
        else
            -- Advances past missing rows, so that a reader always reaches the end.
            v_fits := greatest(v_row.until, v_middle);
            v_bytes := coalesce(v_row.bytes, v_bytes);
            exit when v_bytes >= v_enough;
        end if;
        v_steps := v_steps + 1;
        v_middle := v_fits + case
            when v_steps > c_guesses or v_excess is null then (v_beyond - v_fits) / 2
            else greatest(1, least(
                v_beyond - v_fits - 1,
                (v_beyond - v_fits) * (v_enough + p_bytes - 2 * v_bytes) / (2 * greatest(v_excess - v_bytes, 1))))
        end;
    end loop;
    return v_fits;
end
$function$;

comment on function agent.choose_end(uuid, uuid, agent.channel_value, integer, bigint, boolean) is
    'The element before which a part of a list ends.';
