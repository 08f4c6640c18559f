-- SPDX-License-Identifier: Apache-2.0
-- Closes an account: its API keys are not valid from then on, and no server opens a deployment of it. Its data stays.
-- p_actor: who does it.
-- Returns: ok with the record of the account, also when it was closed before; account_not_found;
--          account_is_built_in.
-- Locks:   the account.
create or replace function agent.end_account(p_account_id uuid, p_actor text, out code text, out body text)
language plpgsql volatile security invoker
set search_path = ''
as $function$
declare
    v_account agent.accounts;
begin
    if p_account_id = agent.built_in_account() then
        code := 'account_is_built_in';
        return;
    end if;
    update agent.accounts a
       set closed_at = agent.now()
     where a.account_id = p_account_id
       and a.closed_at is null
    returning a.* into v_account;
    if found then
        perform agent.record_audit(p_account_id, p_actor, 'account.close', p_account_id::text);
    else
        select a.* into v_account
          from agent.accounts a
         where a.account_id = p_account_id;
        if not found then
            code := 'account_not_found';
            return;
        end if;
    end if;
    code := 'ok';
    body := agent.render_account(v_account);
end
$function$;

comment on function agent.end_account(uuid, text) is 'Closes an account.';
