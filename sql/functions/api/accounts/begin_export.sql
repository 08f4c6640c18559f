-- SPDX-License-Identifier: Apache-2.0
-- Records that an account is exported, before the first part (agent.export_account). p_key_id: of the request.
-- Returns: ok; unknown_key: see agent.lock_actor.
-- Locks:   the account.
create or replace function agent.begin_export(p_key_id text, out code text, out body text)
language plpgsql volatile security invoker
set search_path = ''
as $function$
declare
    v_actor agent.api_keys := agent.lock_actor(p_key_id);
begin
    if v_actor.key_id is null then
        code := 'unknown_key';
        return;
    end if;
    perform agent.record_audit(v_actor.account_id, agent.render_key_actor(p_key_id), 'account.export',
                               v_actor.account_id::text);
    code := 'ok';
end
$function$;

comment on function agent.begin_export(text) is 'Records that an account is exported.';
