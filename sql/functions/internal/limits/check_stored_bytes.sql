-- SPDX-License-Identifier: Apache-2.0
-- Whether the limit of the deployment's account permits to store anything more: as it was when the account was measured
-- last (agent.measure_accounts), which begins with the first call.
-- Returns: null if it does; else the limit (agent.render_limit).
-- Locks:   the row of an account that has not been measured yet.
create or replace function agent.check_stored_bytes(p_deployment_id uuid) returns text
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $function$
declare
    v_account_id uuid;
    v_limit      bigint;
    v_bytes      bigint;
begin
    select d.account_id, agent.find_limit(d.account_id, 'stored_bytes') into v_account_id, v_limit
      from agent.deployments d
     where d.deployment_id = p_deployment_id;
    if v_limit is null then
        return null;
    end if;
    select m.bytes into v_bytes
      from agent.account_measures m
     where m.account_id = v_account_id;
    if not found then
        insert into agent.account_measures (account_id, due_at, bytes)
        select a.account_id, agent.now(), agent.sum_copies(a.account_id)
          from agent.accounts a
         where a.account_id = v_account_id
           and a.closed_at is null
            on conflict (account_id) do nothing;
    end if;
    return case when coalesce(v_bytes, 0) >= v_limit then agent.render_limit('stored_bytes', v_limit) end;
end
$function$;

comment on function agent.check_stored_bytes(uuid) is 'Whether a limit permits an account to store more.';
