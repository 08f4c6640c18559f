-- SPDX-License-Identifier: Apache-2.0
-- Measures what accounts with a limit of stored bytes have stored, those that are due, in calls of 50 ms each.
-- Bytes are not counted as they are written: that costs more than many writes. An account is due from its first
-- request that stores on (agent.check_stored_bytes). Accounts that have waited longest have the first turns, so that a
-- large account does not hold up others; those that were measured in the future, since the database's clock went back,
-- are due. An account is measured again a minute after the end, or after ten times as long as it has taken, so that
-- measures take a tenth of a connection at most; one that failed after a minute. The bytes that it writes or deletes
-- from the begin of a measure on are known at the end of the next one: 610 MB at 10 MB/s and a measure of a second.
-- Returns: 1 when an account had a turn: call again; else 0.
-- Locks:   the rows of the measures, skipping locked ones.
create or replace function agent.measure_accounts() returns integer
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $function$
declare
    v_now   timestamptz := agent.now();
    v_until timestamptz := clock_timestamp() + interval '50 milliseconds';
    v_row   agent.account_measures;
    v_turns integer := 0;
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
        if not found then
            select m.* into v_row
              from agent.account_measures m
             where m.measured_at > v_now + interval '1 minute'
             order by m.measured_at
             limit 1
               for no key update skip locked;
        end if;
        exit when not found;
        v_turns := 1;
        if agent.find_limit(v_row.account_id, 'stored_bytes') is null then
            delete from agent.account_measures m
             where m.account_id = v_row.account_id;
        else
            v_row := agent.measure_account(v_row, v_now, v_until);
            update agent.account_measures m
               set bytes = v_row.bytes,
                   due_at = v_row.due_at,
                   measured_at = v_now,
                   began_at = v_row.began_at,
                   sum_bytes = v_row.sum_bytes,
                   copied_bytes = v_row.copied_bytes,
                   at_deployment_id = v_row.at_deployment_id,
                   table_number = v_row.table_number,
                   last_key = v_row.last_key
             where m.account_id = v_row.account_id;
        end if;
        exit when clock_timestamp() > v_until;
    end loop;
    return v_turns;
end
$function$;

comment on function agent.measure_accounts() is 'Measures what accounts with a limit have stored.';
