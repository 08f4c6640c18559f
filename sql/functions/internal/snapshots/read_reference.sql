-- SPDX-License-Identifier: Apache-2.0
-- A channel of a snapshot from an element on, as a reference of the runner protocol: of a list
-- {"list": {"keep": k, "items": [...]}} with k = p_from.
-- p_bytes: what the elements may have together. p_at_least_one: the first row of a list whatever its length.
-- Returns: body; until: the element before which it ends, p_from when no row of a list fits, 1 for any other value;
--          bytes: the length of what was read.
-- Locks:   none.
create or replace function agent.read_reference(
    p_deployment_id uuid,
    p_thread_id uuid,
    p_channel agent.channel_value,
    p_from integer,
    p_bytes integer,
    p_at_least_one boolean,
    out body text,
    out until integer,
    out bytes integer
)
language plpgsql stable security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set enable_hashjoin = off set enable_mergejoin = off set plan_cache_mode = force_generic_plan
as $function$
declare
    v_ends integer[];
begin
    until := 1;
    if p_channel.length is not null then
        until := agent.choose_end(p_deployment_id, p_thread_id, p_channel, p_from, p_bytes, p_at_least_one);
    end if;
    -- Not within the call: it would not be inlined.
    v_ends := array(select least(e.until, read_reference.until) from unnest(p_channel.ends) e (until));
    select string_agg(i.content, ',') into body
      from agent.read_items(p_deployment_id, p_thread_id, p_channel.list_ids, v_ends, p_from) i;
    bytes := coalesce(octet_length(body), 0);
    body := case
        when p_channel.length is null then coalesce(p_channel.content, body)
        else '{"list":{"keep":' || p_from || ',"items":[' || coalesce(body, '') || ']}}'
    end;
end
$function$;

comment on function agent.read_reference(uuid, uuid, agent.channel_value, integer, integer, boolean) is
    'A channel of a snapshot as a reference.';
