-- SPDX-License-Identifier: Apache-2.0
-- GET /v1/account/usage: the runs of an account that ended in a period, summed for each hour or day of UTC.
-- p_unit: hour or day. p_start, p_end: the period, as texts; null: the last 24 hours or 30 days, and now. The first
-- sum is that of the hour or day of p_start. p_deployment: a name; null: all of the account.
-- Returns: ok with an array of sums, those without a run too; next: p_start of the next page, null after the last one.
--          invalid_value: a text is not a time. A page ends early when it has examined 200,000 runs and deployments;
--          one hour or day is not divided.
-- Bound:   744 sums. Held by `v_count < 744`.
-- Locks:   none.
create or replace function agent.get_usage(
    p_account_id uuid,
    p_unit text,
    p_start text,
    p_end text,
    p_deployment text,
    out code text,
    out body text,
    out next text
)
language plpgsql stable security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_sort = off set plan_cache_mode = force_generic_plan
as $function$
declare
    c_most   constant bigint := 200000;
    c_period constant interval := case p_unit when 'hour' then interval '24 hours' else interval '720 hours' end;
    c_step   constant interval := case p_unit when 'hour' then interval '1 hour' else interval '24 hours' end;
    v_end    timestamptz;
    v_at     timestamptz;
    v_sum    record;
    v_sums   text[] := '{}';
    v_count  integer := 0;
    v_cost   bigint := 0;
begin
    begin
        v_end := coalesce(p_end::timestamptz, agent.now());
        v_at := date_trunc(p_unit, coalesce(p_start::timestamptz, v_end - c_period), 'UTC');
    exception
        when data_exception then null;
    end;
    if (v_at >= '1970-01-01' and v_end < '3000-01-01') is not true then
        code := 'invalid_value';
        body := 'Query parameters start and end: expected a time such as 2026-11-01T00:00:00Z.';
        return;
    end if;
    code := 'ok';
    while v_at < v_end and v_count < 744 and v_cost < c_most loop
        select count(d.deployment_id) as deployments, coalesce(sum(e.runs), 0) as runs,
               coalesce(sum(e.success), 0) as success, coalesce(sum(e.interrupted), 0) as interrupted,
               coalesce(sum(e.error), 0) as error, coalesce(sum(e.timeout), 0) as timeout,
               coalesce(sum(e.rolled_back), 0) as rolled_back, coalesce(sum(e.run_sec), 0) as run_sec
          into v_sum
          from agent.deployments d
          cross join lateral (
                select count(*) as runs,
                       count(*) filter (where u.status = 'success') as success,
                       count(*) filter (where u.status = 'interrupted') as interrupted,
                       count(*) filter (where u.status = 'error') as error,
                       count(*) filter (where u.status = 'timeout') as timeout,
                       count(*) filter (where u.status = 'rolled_back') as rolled_back,
                       round(sum(extract(epoch from u.finished_at - u.started_at)), 3) as run_sec
                  from (
                        select x.*
                          from agent.usage_events x
                         where x.deployment_id = d.deployment_id
                           and x.finished_at >= v_at
                           and x.finished_at < v_at + c_step
                           -- The condition of the index, and an order that no other one has.
                           and x.status <> ''
                         order by x.finished_at
                       ) u
               ) e
         where d.account_id = p_account_id
           and (d.name = p_deployment) is not false;
        v_sums := array_append(v_sums, json_build_object(
            'start', agent.render_time(v_at), 'runs', v_sum.runs, 'success', v_sum.success,
            'interrupted', v_sum.interrupted, 'error', v_sum.error, 'timeout', v_sum.timeout,
            'rolled_back', v_sum.rolled_back, 'run_seconds', v_sum.run_sec)::text);
        v_count := v_count + 1;
        v_cost := v_cost + v_sum.deployments + v_sum.runs;
        v_at := v_at + c_step;
    end loop;
    body := '[' || array_to_string(v_sums, ',') || ']';
    next := case when v_at < v_end then agent.render_time(v_at) end;
end
$function$;

comment on function agent.get_usage(uuid, text, text, text, text) is 'The runs of an account that ended in a period.';
