-- SPDX-License-Identifier: Apache-2.0
-- A page of the API keys of an account: see agent.read_api_keys.
-- Returns: ok with an array of records, [] after the last one; account_not_found.
-- Bound:   1,000 records. Held by agent.read_api_keys.
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
    code := 'ok';
    body := (select r.body from agent.read_api_keys(p_account_id, v_region, p_after, p_limit) r);
end
$function$;

comment on function agent.list_api_keys(uuid, text, integer) is 'The API keys of an account.';
