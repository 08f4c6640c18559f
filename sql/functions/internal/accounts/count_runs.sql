-- SPDX-License-Identifier: Apache-2.0
-- Counts the runs of an account that are unfinished (queued_runs), or its runs and calls that are leased
-- (running_runs). It reads the queue of the account: for the first count and the one of each minute only.
-- Returns: their number.
-- Locks:   none.
create or replace function agent.count_runs(p_account_id uuid, p_name text) returns bigint
language plpgsql stable security invoker
set search_path = '' set jit = off
as $function$
declare
    v_deployment_ids uuid[] := array(
        select d.deployment_id
          from agent.deployments d
         where d.account_id = p_account_id);
    v_count          bigint;
begin
    if p_name = 'running_runs' then
        select count(*) into v_count
          from agent.run_queue q
         where q.worker_id is not null
           and q.deployment_id = any (v_deployment_ids);
    else
        select count(*) into v_count
          from agent.run_queue q
         where q.op is null
           and q.deployment_id = any (v_deployment_ids);
    end if;
    return v_count;
end
$function$;

comment on function agent.count_runs(uuid, text) is 'Counts the unfinished or the leased runs of an account.';
