-- SPDX-License-Identifier: Apache-2.0
-- Counts what accounts have: unfinished runs and updates of states (queued_runs), runs and calls that are leased
-- (running_runs), or webhooks that are not delivered and not given up: the statements that insert, deliver and give up
-- webhooks change the count too, except for one whose worker was lost during its last attempt. p_most: counts no more
-- of an account, but for leased runs; null: all. Threads: agent.count_next_threads.
-- Returns: a row for each account, for running_runs for each that has some.
-- Locks:   none. Reads what the accounts have by their deployments, or all leased runs.
create or replace function agent.count_used(p_account_ids uuid[], p_name text, p_most bigint)
returns table (account_id uuid, value bigint)
language plpgsql stable security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set enable_hashjoin = off set enable_mergejoin = off set plan_cache_mode = force_generic_plan
as $function$
#variable_conflict use_column
begin
    case p_name
    when 'running_runs' then
        return query
            select d.account_id, count(*)
              from agent.run_queue q
             cross join lateral (
                    select x.account_id
                      from agent.deployments x
                     where x.deployment_id = q.deployment_id
                     limit 1
                   ) d
             where q.worker_id is not null
               and d.account_id = any (p_account_ids)
             group by d.account_id;
    when 'webhooks' then
        return query
            select a.id, (
                       select count(*)
                         from (
                               select
                                 from agent.deployments d
                                 join agent.webhook_outbox w on w.deployment_id = d.deployment_id and w.dead_at is null
                                where d.account_id = a.id
                                limit p_most
                              ) x
                   )
              from unnest(p_account_ids) a (id);
    else
        -- The conditions are those of two indexes, which together have each unfinished run.
        return query
            select a.id, (
                       select count(*)
                         from (
                               select
                                 from agent.deployments d
                                cross join lateral (
                                       select
                                         from agent.run_queue q
                                        where q.deployment_id = d.deployment_id
                                          and q.state in ('ready', 'leased')
                                          and (q.op is null or q.op = 'update')
                                       union all
                                       select
                                         from agent.run_queue q
                                        where q.deployment_id = d.deployment_id
                                          and q.state = 'blocked'
                                          and q.op is null
                                      ) r
                                where d.account_id = a.id
                                limit p_most
                              ) x
                   )
              from unnest(p_account_ids) a (id);
    end case;
end
$function$;

comment on function agent.count_used(uuid[], text, bigint) is 'Counts what accounts have.';
