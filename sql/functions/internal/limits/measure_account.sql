-- SPDX-License-Identifier: Apache-2.0
-- Begins the measurement of an account, or continues it until p_until. p_measure: its position, which is advanced;
-- p_now: the time of the call. A measure that fails begins again after a minute; the bytes of the last one stay.
-- Returns: the measure: without began_at when it has ended or failed; due when it is to be continued or to begin again.
-- Locks:   none.
create or replace function agent.measure_account(
    p_measure agent.account_measures,
    p_now timestamptz,
    p_until timestamptz
) returns agent.account_measures
language plpgsql volatile security invoker
set search_path = '' set jit = off
as $function$
declare
    c_pause constant interval := interval '1 minute';
    v_row   agent.account_measures := p_measure;
begin
    if v_row.began_at is null then
        v_row.began_at := p_now;
        v_row.sum_bytes := 0;
        v_row.copied_bytes := 0;
        v_row.at_deployment_id := null;
        v_row.table_number := null;
        v_row.last_key := null;
    end if;
    v_row.due_at := p_now;
    begin
        loop
            v_row := agent.measure_rows(v_row);
            exit when v_row.table_number is null or clock_timestamp() > p_until;
        end loop;
        if v_row.table_number is null then
            v_row.bytes := v_row.sum_bytes + v_row.copied_bytes + agent.sum_copies(v_row.account_id);
            v_row.due_at := p_now + greatest(c_pause, 10 * (p_now - v_row.began_at));
            v_row.began_at := null;
        end if;
    exception when others or query_canceled then
        raise warning 'agent: the measure of account % failed: %', p_measure.account_id, sqlerrm;
        v_row := p_measure;
        v_row.due_at := p_now + c_pause;
        v_row.began_at := null;
    end;
    return v_row;
end
$function$;

comment on function agent.measure_account(agent.account_measures, timestamptz, timestamptz) is
    'Continues the measure of an account.';
