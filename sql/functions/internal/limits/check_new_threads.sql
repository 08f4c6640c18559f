-- SPDX-License-Identifier: Apache-2.0
-- Whether the limits of the deployment's account permit more threads; counts them if they do, in the transaction that
-- creates them. A creation that fails after this check stays in the count until the threads are counted anew.
-- Returns: null if they do; else the limit (agent.render_limit).
-- Locks:   the rows of a new count, or one row of the count. To be called before a thread is locked.
create or replace function agent.check_new_threads(p_deployment_id uuid, p_threads integer) returns text
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $function$
declare
    v_refusal text := agent.check_limit(p_deployment_id, 'threads', p_threads);
begin
    if v_refusal is null then
        perform agent.change_count(p_deployment_id, 'threads', p_threads);
    end if;
    return v_refusal;
end
$function$;

comment on function agent.check_new_threads(uuid, integer) is 'Whether limits permit more threads, which are counted.';
