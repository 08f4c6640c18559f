-- SPDX-License-Identifier: Apache-2.0
-- GET /v1/account/usage: the runs of an account that ended in a period, summed for each hour or day of UTC.
-- p_unit: hour or day. p_start, p_end: the period, as texts; null: the last 24 hours or 30 days, from a full one on,
-- and now. p_deployment: a name; null: all of the account.
-- Returns: ok with an array of sums, those without a run too; next: p_start of the next page, null after the last one.
--          invalid_value: a text is not a time (agent.read_time). A page ends early when it has examined 200,000 runs
--          and deployments; the next one begins with the rest of the same hour or day, under the same start.
-- Bound:   744 sums; 400,000 runs, and 200 of each deployment. Held by `v_count < 744` and agent.sum_usage.
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
    v_end    timestamptz := case when p_end is null then agent.now() else agent.read_time(p_end) end;
    v_at     timestamptz := case
                                when p_start is null then date_trunc(p_unit, v_end - c_period, 'UTC')
                                else agent.read_time(p_start)
                            end;
    v_step   timestamptz;
    v_to     timestamptz;
    v_each   bigint;
    v_part   record;
    v_sum    numeric[];
    v_sums   text[] := '{}';
    v_count  integer := 0;
    v_cost   bigint := 0;
begin
    if (v_at >= '1970-01-01' and v_end < '3000-01-01') is not true then
        code := 'invalid_value';
        body := 'Query parameters start and end: expected a day such as 2026-11-01, or a time of it such as '
            || '2026-11-01T00:00:00Z.';
        return;
    end if;
    code := 'ok';
    select greatest(c_most / greatest(count(*), 1), 100) into v_each
      from agent.deployments d
     where d.account_id = p_account_id;
    while v_at < v_end and v_count < 744 and v_cost < c_most loop
        v_step := date_trunc(p_unit, v_at, 'UTC');
        v_sum := '{0,0,0,0,0,0,0}';
        loop
            v_to := least(v_step + c_step, v_end);
            select * into v_part
              from agent.sum_usage(p_account_id, p_deployment, v_at, v_to, v_each);
            if v_part.cut_at is not null then
                -- Later than v_at, so that each part advances: as many runs as one transaction ends have one time.
                v_to := greatest(v_part.cut_at, v_at + interval '1 microsecond');
                v_cost := v_cost + v_part.examined;
                select * into v_part
                  from agent.sum_usage(p_account_id, p_deployment, v_at, v_to, null);
            end if;
            v_sum := array(select a.value + b.value
                             from unnest(v_sum) with ordinality a (value, pos)
                             join unnest(v_part.sums) with ordinality b (value, pos) on b.pos = a.pos
                            order by a.pos);
            v_cost := v_cost + v_part.examined;
            v_at := v_to;
            exit when v_at >= least(v_step + c_step, v_end) or v_cost >= c_most;
        end loop;
        v_sums := array_append(v_sums, json_build_object(
            'start', agent.render_time(v_step), 'runs', v_sum[1], 'success', v_sum[2], 'interrupted', v_sum[3],
            'error', v_sum[4], 'timeout', v_sum[5], 'rolled_back', v_sum[6], 'run_seconds', v_sum[7])::text);
        v_count := v_count + 1;
    end loop;
    body := '[' || array_to_string(v_sums, ',') || ']';
    next := case when v_at < v_end then agent.render_time(v_at) end;
end
$function$;

comment on function agent.get_usage(uuid, text, text, text, text) is 'The runs of an account that ended in a period.';
