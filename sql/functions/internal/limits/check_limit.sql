-- SPDX-License-Identifier: Apache-2.0
-- Whether the limit of the deployment's account permits p_more of what is counted under a name.
-- Returns: null if it does; else the limit (agent.render_limit).
-- Locks:   the rows of a new count.
create or replace function agent.check_limit(p_deployment_id uuid, p_name text, p_more bigint) returns text
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $function$
declare
    v_account_id uuid;
    v_limit      bigint;
begin
    select d.account_id, agent.find_limit(d.account_id, p_name) into v_account_id, v_limit
      from agent.deployments d
     where d.deployment_id = p_deployment_id;
    return case
        when v_limit is not null and agent.read_count(v_account_id, p_name) + p_more > v_limit
        then agent.render_limit(p_name, v_limit)
    end;
end
$function$;

comment on function agent.check_limit(uuid, text, bigint) is 'Whether a limit of an account permits more.';
