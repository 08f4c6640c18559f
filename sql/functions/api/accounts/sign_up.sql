-- SPDX-License-Identifier: Apache-2.0
-- POST /v1/accounts: creates an account with its first API key, which has all scopes. p_request: the body without its
-- invitation, whose text is never sent here. p_invitation: the digest of that; null: none is needed. p_digest: as in
-- agent.create_api_key.
-- Returns: ok with the record of the key and, as its member account, that of the account; invitation_not_valid: it does
--          not exist, was used or revoked, or has expired; account_exists for an id that is taken; invalid_value with
--          the reason.
-- Locks:   the invitation, then the new rows.
create or replace function agent.sign_up(
    p_request json,
    p_invitation bytea,
    p_account_id uuid,
    p_key_id text,
    p_digest bytea,
    out code text,
    out body text
)
language plpgsql volatile security invoker
set search_path = ''
as $function$
declare
    c_actor         constant text := 'sign-up';
    v_invitation_id uuid;
    v_account       text;
    v_key           agent.api_keys;
begin
    if p_invitation is not null then
        select i.invitation_id into v_invitation_id
          from agent.invitations i
         where i.digest = p_invitation
           and i.used_at is null
           and i.revoked_at is null
           and i.expires_at > agent.now()
           for update;
        if not found then
            code := 'invitation_not_valid';
            return;
        end if;
    end if;
    select i.code, i.body into code, body
      from agent.insert_account(p_account_id, p_request ->> 'name', c_actor,
                                json_build_object('name', p_request ->> 'name', 'invitation_id', v_invitation_id)) i;
    if code <> 'ok' then
        return;
    end if;
    v_account := body;
    update agent.invitations i
       set used_at = agent.now(),
           account_id = p_account_id
     where i.digest = p_invitation;
    v_key.key_id := p_key_id;
    v_key.account_id := p_account_id;
    v_key.digest := p_digest;
    v_key.kind := 'service';
    v_key.name := 'first key';
    v_key.scopes := array['read', 'run', 'deploy', 'admin'];
    select a.code, a.body into code, body
      from agent.add_api_key(v_key, null, null, c_actor) a;
    if code <> 'ok' then
        raise exception using
            errcode = 'MA003',
            message = 'the first key of a new account was refused: ' || code;
    end if;
    body := '{"account":' || v_account || ',' || substr(body, 2);
end
$function$;

comment on function agent.sign_up(json, bytea, uuid, text, bytea) is 'Creates an account with its first API key.';
