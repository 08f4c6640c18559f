-- SPDX-License-Identifier: Apache-2.0
-- Locks the account that an API key manages, if the key may do so now, whatever a server remembers of it: so changes of
-- one account follow each other, and no key makes another one after its own end.
-- Returns: ok with the account; unknown_key: the key is not valid, is for one deployment, or does not grant the scope
--          admin.
-- Locks:   the account.
create or replace function agent.lock_actor(p_key_id text, out code text, out account_id uuid)
language plpgsql volatile security invoker
set search_path = ''
as $function$
begin
    perform agent.lock_key_account(null, p_key_id);
    select 'ok', k.account_id into code, account_id
      from agent.api_keys k
      join agent.accounts a on a.account_id = k.account_id
     where k.key_id = p_key_id
       and k.revoked_at is null
       and (k.expires_at <= agent.now()) is not true
       and k.deployment_id is null
       and 'admin' = any (k.scopes)
       and a.closed_at is null;
    code := coalesce(code, 'unknown_key');
end
$function$;

comment on function agent.lock_actor(text) is 'Locks the account that an API key manages.';
