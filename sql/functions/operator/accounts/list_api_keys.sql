-- SPDX-License-Identifier: Apache-2.0
-- The API keys of an account, also those that are not valid any longer, in the order of their ids. p_after: the last
-- id of the page before; null for the first page.
-- Returns: ok with an array of records, [] after the last one; account_not_found.
-- Bound:   1,000 records. Held by `limit least(p_limit, 1000)`.
-- Locks:   none.
create or replace function agent.list_api_keys(
    p_account_id uuid,
    p_after text,
    p_limit integer,
    out code text,
    out body text
)
language plpgsql stable security invoker
set search_path = ''
as $function$
declare
    v_region text;
begin
    select a.home_region into v_region
      from agent.accounts a
     where a.account_id = p_account_id;
    if not found then
        code := 'account_not_found';
        return;
    end if;
    select 'ok', coalesce(json_agg(agent.render_api_key(k, v_region) order by k.key_id), '[]')
      into code, body
      from (
            select x.*
              from agent.api_keys x
             where x.account_id = p_account_id
               and x.key_id > p_after is not false
             order by x.key_id
             limit least(p_limit, 1000)
           ) k;
end
$function$;

comment on function agent.list_api_keys(uuid, text, integer) is 'The API keys of an account.';
