-- SPDX-License-Identifier: Apache-2.0
-- Locks the account of an API key before the key is changed. p_account_id: whose key it must be; null: anybody's.
-- Returns: the id of the account; null when there is no such key.
-- Locks:   the account.
create or replace function agent.lock_key_account(p_account_id uuid, p_key_id text) returns uuid
language plpgsql volatile security invoker
set search_path = ''
as $function$
declare
    v_account_id uuid;
begin
    -- A key stays with its account, so that it can be read without a lock.
    select k.account_id into v_account_id
      from agent.api_keys k
     where k.key_id = p_key_id
       and (k.account_id = p_account_id) is not false;
    perform from agent.accounts a
      where a.account_id = v_account_id
        for no key update;
    return v_account_id;
end
$function$;

comment on function agent.lock_key_account(uuid, text) is 'Locks the account of an API key.';
