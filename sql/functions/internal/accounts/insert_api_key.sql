-- SPDX-License-Identifier: Apache-2.0
-- Inserts an API key, and records it.
-- Returns: ok with the record of the key; account_not_found, account_closed; key_exists for an id that is taken;
--          limit_exceeded, the same for an operator: a key that takes the place of another one may exceed the limit
--          by one while both are valid; too_many_actions; invalid_value with the comment on the check that failed.
-- Locks:   the account when it has a limit, else against its deletion; the new row.
create or replace function agent.insert_api_key(
    p_key agent.api_keys,
    p_actor text,
    p_action text,
    p_detail json,
    out code text,
    out body text
)
language plpgsql volatile security invoker
set search_path = ''
as $function$
declare
    v_region     text;
    v_constraint text;
    v_key        agent.api_keys := p_key;
begin
    select case when a.closed_at is not null then 'account_closed' else 'ok' end, a.home_region into code, v_region
      from agent.accounts a
     where a.account_id = p_key.account_id;
    if not found then
        code := 'account_not_found';
    end if;
    if code <> 'ok' then
        return;
    end if;
    body := agent.check_actions(p_key.account_id, p_actor);
    if body is not null then
        code := 'too_many_actions';
        return;
    end if;
    body := agent.check_key_limit(p_key.account_id, case when p_action = 'key.rotate' then 1 else 0 end);
    if body is not null then
        code := 'limit_exceeded';
        return;
    end if;
    v_key.lifetime := v_key.expires_at - v_key.created_at;
    insert into agent.api_keys
    select v_key.*
        on conflict (key_id) do nothing;
    if not found then
        code := 'key_exists';
        return;
    end if;
    perform agent.record_audit(p_key.account_id, p_actor, p_action, p_key.key_id, p_detail);
    body := agent.render_api_key(
        p_key, v_region, (select d.name from agent.deployments d where d.deployment_id = p_key.deployment_id));
exception
    when check_violation then
        code := 'invalid_value';
        get stacked diagnostics v_constraint = constraint_name;
        body := agent.describe_check(v_constraint);
end
$function$;

comment on function agent.insert_api_key(agent.api_keys, text, text, json) is 'Inserts an API key, and records it.';
