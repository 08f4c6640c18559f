-- SPDX-License-Identifier: Apache-2.0
-- The API key that manages an account: whether it may do so now, whatever a server remembers of it. Locks the account,
-- so that changes of one account follow each other, and no key makes another one after its own end.
-- Returns: the key; null when it is not valid, is for one deployment, or does not grant the scope admin.
-- Locks:   the account.
create or replace function agent.lock_actor(p_key_id text) returns agent.api_keys
language plpgsql volatile security invoker
set search_path = ''
as $function$
declare
    v_key agent.api_keys;
begin
    perform agent.lock_key_account(null, p_key_id);
    select k.* into v_key
      from agent.api_keys k
      join agent.accounts a on a.account_id = k.account_id
     where k.key_id = p_key_id
       and k.revoked_at is null
       and (k.expires_at <= agent.now()) is not true
       and k.deployment_id is null
       and 'admin' = any (k.scopes)
       and a.closed_at is null;
    return v_key;
end
$function$;

comment on function agent.lock_actor(text) is 'The API key that manages an account, which is locked.';
