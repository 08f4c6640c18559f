-- SPDX-License-Identifier: Apache-2.0
-- Revokes an API key. Servers that have verified it accept it for 2 seconds more at most.
-- Returns: ok with the record of the key, also when it was revoked before; key_not_found.
-- Locks:   the account, then the key.
create or replace function agent.revoke_api_key(p_key_id text, out code text, out body text)
language plpgsql volatile security invoker
set search_path = ''
as $function$
begin
    select e.code, e.body into code, body
      from agent.end_api_key(null, p_key_id, agent.render_operator()) e;
end
$function$;

comment on function agent.revoke_api_key(text) is 'Revokes an API key.';
