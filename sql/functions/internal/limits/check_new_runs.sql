-- SPDX-License-Identifier: Apache-2.0
-- Whether the limits of the deployment's account permit more unfinished runs, and for these p_threads new threads,
-- p_webhooks deliveries of webhooks and more stored bytes. The threads are counted (agent.check_new_threads).
-- Returns: null if they do; else the limit (agent.render_limit).
-- Locks:   the rows of new counts, and one row of the count of threads.
create or replace function agent.check_new_runs(
    p_deployment_id uuid,
    p_runs integer,
    p_threads integer default 0,
    p_webhooks integer default 0
) returns text
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $function$
begin
    if not exists (select from agent.account_limits) then
        return null;
    end if;
    -- The last one counts.
    return coalesce(
        agent.check_stored_bytes(p_deployment_id),
        agent.check_limit(p_deployment_id, 'queued_runs', p_runs),
        case when p_webhooks > 0 then agent.check_limit(p_deployment_id, 'webhooks', p_webhooks) end,
        case when p_threads > 0 then agent.check_new_threads(p_deployment_id, p_threads) end);
end
$function$;

comment on function agent.check_new_runs(uuid, integer, integer, integer) is
    'Whether limits permit more unfinished runs.';
