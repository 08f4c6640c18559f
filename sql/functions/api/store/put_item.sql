-- SPDX-License-Identifier: Apache-2.0
-- PUT /store/items. p_request: the body; p_ttl: as of agent.put_items.
-- Returns: ok; limit_exceeded.
-- Locks:   the item.
create or replace function agent.put_item(
    p_deployment_id uuid,
    p_request json,
    p_ttl interval default null,
    out code text,
    out body text
)
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set plan_cache_mode = force_generic_plan
as $function$
begin
    if exists (select from agent.account_limits) then
        body := agent.check_stored_bytes(p_deployment_id);
        if body is not null then
            code := 'limit_exceeded';
            return;
        end if;
    end if;
    perform agent.put_items(p_deployment_id, json_build_array(p_request), p_ttl);
    code := 'ok';
end
$function$;

comment on function agent.put_item(uuid, json, interval) is 'PUT /store/items.';
