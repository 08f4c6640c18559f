-- SPDX-License-Identifier: Apache-2.0
-- Finds an API key for the authentication of a request: the server compares the digest, in constant time, and knows
-- then whose key it is. The secret is never sent here. A key that has expired is revoked for good, so that a
-- clock that goes back does not make it valid again.
-- Returns: ok with an object: digest (hexadecimal), account_id, kind, user_id, deployment_id and deployment, its name
--          (null: all deployments of the account), region (the home of the account), scopes, expires_in_ms (null: it
--          does not expire), is_used (whether its use in this hour is recorded: agent.use_api_key). unknown_key: it
--          does not exist, has expired or was revoked, or its account is closed.
-- Locks:   the key, when it has expired.
create or replace function agent.find_api_key(p_key_id text, out code text, out body text)
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set plan_cache_mode = force_generic_plan
as $function$
declare
    v_now timestamptz := agent.now();
    v_key agent.api_keys;
begin
    select k.* into v_key
      from agent.api_keys k
      join agent.accounts a on a.account_id = k.account_id
     where k.key_id = p_key_id
       and k.revoked_at is null
       and a.closed_at is null;
    if v_key.expires_at <= v_now then
        perform agent.expire_api_keys(array[p_key_id]);
    elsif v_key.key_id is not null then
        code := 'ok';
        body := json_build_object(
            'digest', encode(v_key.digest, 'hex'),
            'account_id', v_key.account_id,
            'kind', v_key.kind,
            'user_id', v_key.user_id,
            'deployment_id', v_key.deployment_id,
            'deployment', (select d.name from agent.deployments d where d.deployment_id = v_key.deployment_id),
            'region', (select a.home_region from agent.accounts a where a.account_id = v_key.account_id),
            'scopes', v_key.scopes,
            'expires_in_ms', ceil(extract(epoch from v_key.expires_at - v_now) * 1000)::bigint,
            'is_used', coalesce(v_key.last_used_at >= date_trunc('hour', v_now, 'UTC'), false));
        return;
    end if;
    code := 'unknown_key';
end
$function$;

comment on function agent.find_api_key(text) is 'Finds an API key for the authentication of a request.';
