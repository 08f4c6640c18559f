-- SPDX-License-Identifier: Apache-2.0
-- The runs of an account that ended from p_start to p_end, for agent.get_usage. p_deployment: a name; null: all of the
-- account. p_most: runs of a deployment that are examined; null: all.
-- Returns: sums: numbers of all runs and of those with each status, success, interrupted, error, timeout and
--          rolled_back, and their seconds; examined: deployments and runs; cut_at: a time before which all are known,
--          when a deployment has p_most runs. Then the sums miss some, and are to be read again up to that time.
-- Locks:   none.
create or replace function agent.sum_usage(
    p_account_id uuid,
    p_deployment text,
    p_start timestamptz,
    p_end timestamptz,
    p_most bigint,
    out sums numeric[],
    out examined bigint,
    out cut_at timestamptz
)
language plpgsql stable security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_sort = off set plan_cache_mode = force_generic_plan
as $function$
begin
    select array[coalesce(sum(e.runs), 0), coalesce(sum(e.success), 0), coalesce(sum(e.interrupted), 0),
                 coalesce(sum(e.error), 0), coalesce(sum(e.timeout), 0), coalesce(sum(e.rolled_back), 0),
                 coalesce(sum(e.run_sec), 0)],
           count(d.deployment_id) + coalesce(sum(e.runs), 0),
           min(e.last_at) filter (where e.runs = p_most)
      into sums, examined, cut_at
      from agent.deployments d
      cross join lateral (
            select count(*) as runs,
                   count(*) filter (where u.status = 'success') as success,
                   count(*) filter (where u.status = 'interrupted') as interrupted,
                   count(*) filter (where u.status = 'error') as error,
                   count(*) filter (where u.status = 'timeout') as timeout,
                   count(*) filter (where u.status = 'rolled_back') as rolled_back,
                   round(sum(extract(epoch from u.finished_at - u.started_at)), 3) as run_sec,
                   max(u.finished_at) as last_at
              from (
                    select x.*
                      from agent.usage_events x
                     where x.deployment_id = d.deployment_id
                       and x.finished_at >= p_start
                       and x.finished_at < p_end
                       -- The condition of the index, and an order that no other one has.
                       and x.status <> ''
                     order by x.finished_at
                     limit p_most
                   ) u
           ) e
     where d.account_id = p_account_id
       and (d.name = p_deployment) is not false;
end
$function$;

comment on function agent.sum_usage(uuid, text, timestamptz, timestamptz, bigint) is
    'The runs of an account that ended in a part of a period.';
