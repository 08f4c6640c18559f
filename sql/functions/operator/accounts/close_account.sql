-- SPDX-License-Identifier: Apache-2.0
-- Closes an account: its API keys are not valid from then on, and no server opens a deployment of it. Its data stays.
-- Returns: ok with the record of the account, also when it was closed before; account_not_found;
--          account_is_built_in.
-- Locks:   the account.
create or replace function agent.close_account(p_account_id uuid, out code text, out body text)
language plpgsql volatile security invoker
set search_path = ''
as $function$
begin
    select e.code, e.body into code, body
      from agent.end_account(p_account_id, agent.render_operator()) e;
end
$function$;

comment on function agent.close_account(uuid) is 'Closes an account.';
