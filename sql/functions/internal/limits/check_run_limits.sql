-- SPDX-License-Identifier: Apache-2.0
-- Whether the limits of the deployment's account permit more unfinished runs, and for these p_threads new threads,
-- p_webhooks deliveries of webhooks and more stored bytes. Where no account has limits the caller saves the call.
-- Returns: null if they do; else the limit (agent.render_limit).
-- Locks:   the rows of new counts.
create or replace function agent.check_run_limits(
    p_deployment_id uuid,
    p_runs integer,
    p_threads integer,
    p_webhooks integer
) returns text
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $function$
begin
    return coalesce(
        agent.check_stored_bytes(p_deployment_id),
        agent.check_limit(p_deployment_id, 'queued_runs', p_runs),
        case when p_webhooks > 0 then agent.check_limit(p_deployment_id, 'webhooks', p_webhooks) end,
        case when p_threads > 0 then agent.check_limit(p_deployment_id, 'threads', p_threads) end);
end
$function$;

comment on function agent.check_run_limits(uuid, integer, integer, integer) is
    'Whether limits permit more unfinished runs.';
