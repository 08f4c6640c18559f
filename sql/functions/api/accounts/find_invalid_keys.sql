-- SPDX-License-Identifier: Apache-2.0
-- Which of some API keys are no longer valid, one statement for all requests that wait: these end then.
-- Returns: a row for each key that does not exist, has expired or was revoked, or whose account is closed.
-- Bound:   the keys that are asked for. Held by `from unnest(p_key_ids)`.
-- Locks:   none.
create or replace function agent.find_invalid_keys(p_key_ids text[])
returns table (key_id text)
language sql stable security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set enable_hashjoin = off set enable_mergejoin = off set plan_cache_mode = force_generic_plan
as $function$
    select w.key_id
      from unnest(p_key_ids) w (key_id)
     where not exists (
            select
              from agent.api_keys k
              join agent.accounts a on a.account_id = k.account_id
             where k.key_id = w.key_id collate "C"
               and k.revoked_at is null
               and (k.expires_at > agent.now()) is not false
               and a.closed_at is null)
$function$;

comment on function agent.find_invalid_keys(text[]) is 'Which of some API keys are no longer valid.';
