-- SPDX-License-Identifier: Apache-2.0
-- Accounts in the order of their ids, which is that of their creation. p_after: the last id of the page before;
-- null for the first page.
-- Returns: ok with an array of records, [] after the last one.
-- Bound:   1,000 records. Held by `limit least(p_limit, 1000)`.
-- Locks:   none.
create or replace function agent.list_accounts(p_after uuid, p_limit integer, out code text, out body text)
language plpgsql stable security invoker
set search_path = ''
as $function$
begin
    select 'ok', coalesce(json_agg(agent.render_account(a) order by a.account_id), '[]')
      into code, body
      from (
            select x.*
              from agent.accounts x
             where x.account_id > p_after is not false
             order by x.account_id
             limit least(p_limit, 1000)
           ) a;
end
$function$;

comment on function agent.list_accounts(uuid, integer) is 'Accounts in the order of their creation.';
