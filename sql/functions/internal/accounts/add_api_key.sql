-- SPDX-License-Identifier: Apache-2.0
-- Creates an API key from its columns. p_deployment: the name of the deployment that it is for; null: all of the
-- account. p_lifetime: null: it does not expire. p_actor: who creates it.
-- Returns: as agent.insert_api_key; deployment_not_found with its name.
-- Locks:   the new row, and the account's and the deployment's against their deletion.
create or replace function agent.add_api_key(
    p_key agent.api_keys,
    p_deployment text,
    p_lifetime interval,
    p_actor text,
    out code text,
    out body text
)
language plpgsql volatile security invoker
set search_path = ''
as $function$
declare
    v_key agent.api_keys := p_key;
begin
    v_key.created_at := agent.now();
    v_key.expires_at := v_key.created_at + p_lifetime;
    if p_deployment is not null then
        select d.deployment_id into v_key.deployment_id
          from agent.deployments d
         where d.account_id = v_key.account_id
           and d.name = p_deployment;
        if not found then
            code := 'deployment_not_found';
            body := 'The account has no deployment ' || p_deployment
                || '. One exists once a server has served it.';
            return;
        end if;
    end if;
    select i.code, i.body into code, body
      from agent.insert_api_key(v_key, p_actor, 'key.create',
                                json_build_object('kind', v_key.kind, 'name', v_key.name, 'scopes', v_key.scopes)) i;
end
$function$;

comment on function agent.add_api_key(agent.api_keys, text, interval, text) is 'Creates an API key from its columns.';
