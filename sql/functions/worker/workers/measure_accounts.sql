-- SPDX-License-Identifier: Apache-2.0
-- Measures what accounts with a limit of stored bytes have stored, those that are due, in pieces: each call goes on for
-- 50 ms. An account is measured again a minute after the end, or after ten times as long as it has taken. The bytes
-- that it writes during this are not known before the end of the next measure.
-- Returns: 1 when something was measured: call again; else 0.
-- Locks:   the rows of the measures, skipping locked ones.
create or replace function agent.measure_accounts() returns integer
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $function$
declare
    v_now      timestamptz := agent.now();
    v_end      timestamptz := clock_timestamp() + interval '50 milliseconds';
    v_row      agent.account_measures;
    v_measured integer := 0;
begin
    if not exists (select from agent.account_limits l where l.name = 'stored_bytes' and l.value is not null) then
        -- Without a limit: so that the next one begins with a measure.
        delete from agent.account_measures;
        return 0;
    end if;
    loop
        select m.* into v_row
          from agent.account_measures m
         where m.due_at <= v_now
         order by m.due_at
         limit 1
           for no key update skip locked;
        exit when not found;
        v_measured := 1;
        if agent.find_limit(v_row.account_id, 'stored_bytes') is null then
            delete from agent.account_measures m
             where m.account_id = v_row.account_id;
        else
            if v_row.began_at is null then
                v_row.began_at := v_now;
                v_row.sum_bytes := 0;
                v_row.at_deployment_id := null;
                v_row.last_key := null;
            end if;
            loop
                v_row := agent.measure_rows(v_row);
                exit when v_row.table_number is null or clock_timestamp() > v_end;
            end loop;
            if v_row.table_number is null then
                v_row.bytes := v_row.sum_bytes;
                v_row.due_at := v_now + greatest(interval '1 minute', 10 * (v_now - v_row.began_at));
                v_row.began_at := null;
            end if;
            update agent.account_measures m
               set bytes = v_row.bytes,
                   due_at = v_row.due_at,
                   began_at = v_row.began_at,
                   sum_bytes = v_row.sum_bytes,
                   at_deployment_id = v_row.at_deployment_id,
                   table_number = v_row.table_number,
                   last_key = v_row.last_key
             where m.account_id = v_row.account_id;
        end if;
        exit when clock_timestamp() > v_end;
    end loop;
    return v_measured;
end
$function$;

comment on function agent.measure_accounts() is 'Measures what accounts with a limit have stored.';
