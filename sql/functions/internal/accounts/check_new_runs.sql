-- SPDX-License-Identifier: Apache-2.0
-- Whether the limit of the deployment's account permits more unfinished runs.
-- Returns: null if it does; else the limit (agent.render_limit).
-- Locks:   the rows of a new count.
create or replace function agent.check_new_runs(p_deployment_id uuid, p_runs integer) returns text
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $function$
declare
    v_account_id uuid;
    v_limit      bigint;
begin
    if not exists (select from agent.account_limits) then
        return null;
    end if;
    select d.account_id, agent.find_limit(d.account_id, 'queued_runs') into v_account_id, v_limit
      from agent.deployments d
     where d.deployment_id = p_deployment_id;
    return case
        when v_limit is not null and agent.read_count(v_account_id, 'queued_runs') + p_runs > v_limit
        then agent.render_limit('queued_runs', v_limit)
    end;
end
$function$;

comment on function agent.check_new_runs(uuid, integer) is 'Whether a limit permits more unfinished runs.';
