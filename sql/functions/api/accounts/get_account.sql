-- SPDX-License-Identifier: Apache-2.0
-- GET /v1/account.
-- Returns: ok with the record of the account; account_not_found.
-- Locks:   none.
create or replace function agent.get_account(p_account_id uuid, out code text, out body text)
language plpgsql stable security invoker
set search_path = ''
as $function$
begin
    select 'ok', agent.render_account(a) into code, body
      from agent.accounts a
     where a.account_id = p_account_id;
    code := coalesce(code, 'account_not_found');
end
$function$;

comment on function agent.get_account(uuid) is 'The record of an account.';
