-- SPDX-License-Identifier: Apache-2.0
-- A page of the API keys of an account, also those that are no longer valid, in the order of their ids. p_after:
-- the last id of the page before; null for the first page. p_region: the region of the account.
-- Returns: an array of records; next: p_after of the next page, null after one that is not full.
-- Bound:   1,000 records. Held by `limit least(p_limit, 1000)`.
-- Locks:   none.
create or replace function agent.read_api_keys(
    p_account_id uuid,
    p_region text,
    p_after text,
    p_limit integer,
    out body text,
    out next text
)
language plpgsql stable security invoker
set search_path = '' set jit = off set enable_seqscan = off set plan_cache_mode = force_generic_plan
as $function$
begin
    select coalesce(json_agg(agent.render_api_key(
               k, p_region, (select d.name from agent.deployments d where d.deployment_id = k.deployment_id))
               order by k.key_id), '[]'),
           case when count(*) = least(p_limit, 1000) then max(k.key_id) end
      into body, next
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

comment on function agent.read_api_keys(uuid, text, text, integer) is 'A page of the API keys of an account.';
