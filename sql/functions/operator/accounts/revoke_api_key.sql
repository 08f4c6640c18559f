-- SPDX-License-Identifier: Apache-2.0
-- Revokes an API key. Servers that have verified it accept it for 2 seconds more at most.
-- Returns: ok with the record of the key, also when it was revoked before; key_not_found.
-- Locks:   the key.
create or replace function agent.revoke_api_key(p_key_id text, out code text, out body text)
language plpgsql volatile security invoker
set search_path = ''
as $function$
declare
    v_key agent.api_keys;
begin
    update agent.api_keys k
       set revoked_at = agent.now()
     where k.key_id = p_key_id
       and k.revoked_at is null
    returning k.* into v_key;
    if found then
        perform agent.record_audit(v_key.account_id, agent.render_operator(), 'key.revoke', p_key_id);
    else
        select k.* into v_key
          from agent.api_keys k
         where k.key_id = p_key_id;
        if not found then
            code := 'key_not_found';
            return;
        end if;
    end if;
    code := 'ok';
    body := agent.render_api_key(v_key, (select r.region from agent.region r));
end
$function$;

comment on function agent.revoke_api_key(text) is 'Revokes an API key.';
