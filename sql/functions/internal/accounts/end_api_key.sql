-- SPDX-License-Identifier: Apache-2.0
-- Revokes an API key. p_account_id: whose key it must be; null: anybody's. p_actor: who does it.
-- Returns: ok with the record of the key, also when it was revoked before; key_not_found.
-- Locks:   the account, then the key.
create or replace function agent.end_api_key(
    p_account_id uuid,
    p_key_id text,
    p_actor text,
    out code text,
    out body text
)
language plpgsql volatile security invoker
set search_path = ''
as $function$
declare
    v_account_id uuid := agent.lock_key_account(p_account_id, p_key_id);
    v_key        agent.api_keys;
begin
    update agent.api_keys k
       set revoked_at = agent.now()
     where k.key_id = p_key_id
       and k.account_id = v_account_id
       and k.revoked_at is null
    returning k.* into v_key;
    if found then
        perform agent.record_audit(v_account_id, p_actor, 'key.revoke', p_key_id);
    else
        select k.* into v_key
          from agent.api_keys k
         where k.key_id = p_key_id
           and k.account_id = v_account_id;
        if not found then
            code := 'key_not_found';
            return;
        end if;
    end if;
    code := 'ok';
    body := agent.render_api_key(
        v_key, (select r.region from agent.region r),
        (select d.name from agent.deployments d where d.deployment_id = v_key.deployment_id));
end
$function$;

comment on function agent.end_api_key(uuid, text, text) is 'Revokes an API key.';
