-- SPDX-License-Identifier: Apache-2.0
-- POST /v1/account/keys: creates an API key of the account of another one. p_key_id: of the request. p_request: the
-- body. p_digest: as in agent.create_api_key.
-- Returns: ok with the record of the new key; unknown_key: see agent.lock_actor; deployment_not_found; key_exists;
--          limit_exceeded; too_many_actions; invalid_value with the reason.
-- Locks:   the account, then the new row.
create or replace function agent.create_account_key(
    p_key_id text,
    p_request json,
    p_new_key_id text,
    p_digest bytea,
    out code text,
    out body text
)
language plpgsql volatile security invoker
set search_path = ''
as $function$
declare
    v_account_id uuid;
    v_key        agent.api_keys;
begin
    select l.code, l.account_id into code, v_account_id
      from agent.lock_actor(p_key_id) l;
    if code <> 'ok' then
        return;
    end if;
    v_key.key_id := p_new_key_id;
    v_key.account_id := v_account_id;
    v_key.digest := p_digest;
    v_key.kind := coalesce(p_request ->> 'kind', 'service');
    v_key.name := p_request ->> 'name';
    v_key.user_id := p_request ->> 'user_id';
    v_key.scopes := case json_typeof(p_request -> 'scopes')
                        when 'array' then array(select json_array_elements_text(p_request -> 'scopes'))
                        else array['read', 'run']
                    end;
    select a.code, a.body into code, body
      from agent.add_api_key(v_key, p_request ->> 'deployment',
                             make_interval(secs => (p_request ->> 'expires_in_sec')::double precision),
                             agent.render_key_actor(p_key_id)) a;
end
$function$;

comment on function agent.create_account_key(text, json, text, bytea) is
    'Creates an API key of the account of another one.';
