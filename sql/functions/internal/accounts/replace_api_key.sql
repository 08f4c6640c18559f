-- SPDX-License-Identifier: Apache-2.0
-- Creates an API key that takes the place of another one: the same account, kind, name, user, deployment, scopes and
-- lifetime. The old one is valid for p_overlap more, or until its own end when that is earlier. While it is, it may be
-- rotated again, for a client that has lost the response: each new key has the whole lifetime. p_account_id: whose key
-- it must be; null: anybody's. p_actor: who does it.
-- Returns: ok with the record of the new key; key_not_found; key_revoked: the old one is not valid; account_closed;
--          key_exists for a new id that is taken; limit_exceeded; too_many_actions; invalid_value with the reason.
-- Locks:   the account, then the old key, then the new row.
create or replace function agent.replace_api_key(
    p_account_id uuid,
    p_key_id text,
    p_new_key_id text,
    p_digest bytea,
    p_overlap interval,
    p_actor text,
    out code text,
    out body text
)
language plpgsql volatile security invoker
set search_path = ''
as $function$
declare
    v_account_id uuid := agent.lock_key_account(p_account_id, p_key_id);
    v_overlap    interval := greatest(p_overlap, '0');
    v_now        timestamptz;
    v_old        agent.api_keys;
    v_new        agent.api_keys;
begin
    select k.* into v_old
      from agent.api_keys k
     where k.key_id = p_key_id
       and k.account_id = v_account_id
       for update;
    if not found then
        code := 'key_not_found';
        return;
    end if;
    v_now := agent.now();
    if v_old.revoked_at is not null or v_old.expires_at <= v_now then
        code := 'key_revoked';
        return;
    end if;
    v_new := v_old;
    v_new.key_id := p_new_key_id;
    v_new.digest := p_digest;
    v_new.created_at := v_now;
    v_new.expires_at := v_now + v_old.lifetime;
    v_new.last_used_at := null;
    select i.code, i.body into code, body
      from agent.insert_api_key(v_new, p_actor, 'key.rotate',
                                json_build_object('old_key_id', p_key_id, 'overlap_sec',
                                                  extract(epoch from v_overlap)::bigint)) i;
    if code = 'ok' then
        update agent.api_keys k
           set expires_at = least(k.expires_at, v_now + v_overlap),
               revoked_at = case when v_overlap = '0' then v_now end
         where k.key_id = p_key_id;
    end if;
end
$function$;

comment on function agent.replace_api_key(uuid, text, text, bytea, interval, text) is
    'Creates an API key that takes the place of another one.';
