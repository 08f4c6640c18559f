-- SPDX-License-Identifier: Apache-2.0
-- GET /auth: whose key it is. p_key_id: of the request.
-- Returns: ok with an object: account_id, account_name, region, key_id, key_name, kind, user_id, scopes, deployment (a
--          name; null: all of the account), expires_at. unknown_key.
-- Locks:   none.
create or replace function agent.describe_api_key(p_key_id text, out code text, out body text)
language plpgsql stable security invoker
set search_path = '' set jit = off set enable_seqscan = off set plan_cache_mode = force_generic_plan
as $function$
begin
    select 'ok', json_build_object(
               'account_id', k.account_id,
               'account_name', a.name,
               'region', a.home_region,
               'key_id', k.key_id,
               'key_name', k.name,
               'kind', k.kind,
               'user_id', k.user_id,
               'scopes', k.scopes,
               'deployment', d.name,
               'expires_at', agent.render_time(k.expires_at))
      into code, body
      from agent.api_keys k
      join agent.accounts a on a.account_id = k.account_id
      left join agent.deployments d on d.deployment_id = k.deployment_id
     where k.key_id = p_key_id;
    code := coalesce(code, 'unknown_key');
end
$function$;

comment on function agent.describe_api_key(text) is 'Describes an API key: account, scopes, deployment, expiry.';
