-- SPDX-License-Identifier: Apache-2.0
-- Creates an API key. p_digest: SHA-256 of its secret, which is not sent here. p_deployment: the name of the
-- deployment that it is for; null: all of the account. p_lifetime: null: it does not expire.
-- Returns: ok with the record of the key; account_not_found, account_closed, deployment_not_found; key_exists for an
--          id that is taken; limit_exceeded; invalid_value with the reason.
-- Locks:   the new row, and the account's and the deployment's against their deletion.
create or replace function agent.create_api_key(
    p_key_id text,
    p_account_id uuid,
    p_digest bytea,
    p_kind text,
    p_name text,
    p_user_id text,
    p_deployment text,
    p_scopes text[],
    p_lifetime interval,
    out code text,
    out body text
)
language plpgsql volatile security invoker
set search_path = ''
as $function$
declare
    v_key agent.api_keys;
begin
    v_key.key_id := p_key_id;
    v_key.account_id := p_account_id;
    v_key.digest := p_digest;
    v_key.kind := p_kind;
    v_key.name := p_name;
    v_key.user_id := p_user_id;
    v_key.scopes := p_scopes;
    select a.code, a.body into code, body
      from agent.add_api_key(v_key, p_deployment, p_lifetime, agent.render_operator()) a;
end
$function$;

comment on function agent.create_api_key(text, uuid, bytea, text, text, text, text, text[], interval) is
    'Creates an API key.';
