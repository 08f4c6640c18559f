-- SPDX-License-Identifier: Apache-2.0
-- GET /v1/account/keys: a page of the API keys of an account.
-- Returns: ok with an array of records; next: as agent.read_api_keys.
-- Bound:   1,000 records. Held by agent.read_api_keys.
-- Locks:   none.
create or replace function agent.list_account_keys(
    p_account_id uuid,
    p_after text,
    p_limit integer,
    out code text,
    out body text,
    out next text
)
language sql stable security invoker
set search_path = ''
as $function$
    select 'ok', r.body, r.next
      from agent.read_api_keys(
               p_account_id, (select a.home_region from agent.accounts a where a.account_id = p_account_id),
               p_after, p_limit) r
$function$;

comment on function agent.list_account_keys(uuid, text, integer) is 'The API keys of an account.';
