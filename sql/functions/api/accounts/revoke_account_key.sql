-- SPDX-License-Identifier: Apache-2.0
-- DELETE /v1/account/keys/{key_id}. p_key_id: of the request; it may revoke itself.
-- Returns: ok with the record of the key, also when it was revoked before; key_not_found, also for a key of another
--          account; unknown_key: see agent.lock_actor.
-- Locks:   the account, then the key.
create or replace function agent.revoke_account_key(p_key_id text, p_old_key_id text, out code text, out body text)
language plpgsql volatile security invoker
set search_path = ''
as $function$
declare
    v_account_id uuid;
begin
    select l.code, l.account_id into code, v_account_id
      from agent.lock_actor(p_key_id) l;
    if code <> 'ok' then
        return;
    end if;
    select e.code, e.body into code, body
      from agent.end_api_key(v_account_id, p_old_key_id, agent.render_key_actor(p_key_id)) e;
end
$function$;

comment on function agent.revoke_account_key(text, text) is 'Revokes an API key of the same account.';
