-- SPDX-License-Identifier: Apache-2.0
-- Reads an item of the store that has not expired. p_found: see agent.render_item.
-- p_max_bytes: null = any; the value of a longer item is not read.
-- Returns: the item, null for none and for a longer one; bytes: about its length, null for none; expires: whether it
--          has a time to live, which agent.refresh_items begins again.
-- Locks:   none.
create or replace function agent.read_item(
    p_deployment_id uuid,
    p_namespace text[],
    p_key text,
    p_found boolean,
    p_max_bytes bigint default null,
    out body text,
    out bytes integer,
    out expires boolean
)
language plpgsql stable security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $function$
declare
    v_now timestamptz := agent.now();
begin
    select case when i.value_bytes > p_max_bytes is not true then agent.render_item(i, p_found) end,
           i.value_bytes + octet_length(i.namespace::text) + octet_length(i.key),
           i.ttl is not null
      into body, bytes, expires
      from agent.store_items i
     where i.deployment_id = p_deployment_id
       and i.namespace = p_namespace
       and i.key = p_key
       and agent.is_live_item(i.expires_at, v_now);
    bytes := coalesce(octet_length(body), bytes);
end
$function$;

comment on function agent.read_item(uuid, text[], text, boolean, bigint) is 'Reads an item of the store.';
