-- SPDX-License-Identifier: Apache-2.0
-- Records that an API key is used in this hour. The server calls it after it has compared the digest, and only when
-- agent.find_api_key has said that this is not recorded yet.
-- Returns: ok, also for a key that does not exist.
-- Locks:   the key, unless another server has recorded it.
create or replace function agent.use_api_key(p_key_id text, out code text, out body text)
language plpgsql volatile security invoker
set search_path = '' set enable_seqscan = off set plan_cache_mode = force_generic_plan
as $function$
declare
    v_hour timestamptz := date_trunc('hour', agent.now(), 'UTC');
begin
    update agent.api_keys k
       set last_used_at = v_hour
     where k.key_id = p_key_id
       and (k.last_used_at < v_hour) is not false;
    code := 'ok';
end
$function$;

comment on function agent.use_api_key(text) is 'Records that an API key is used in this hour.';
