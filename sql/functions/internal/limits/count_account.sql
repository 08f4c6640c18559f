-- SPDX-License-Identifier: Apache-2.0
-- Counts anew what an account has, without a lock that a writer could need, and corrects the sum of its count by the
-- difference. Both are read by one statement, and writers change both in one transaction: the difference is exact,
-- whatever they do during this. Threads are counted in pieces of 20,000 until p_until, which later calls continue: the
-- sum is then read with the last piece, and the difference is wrong by what was created and deleted among the threads
-- that had been counted before, at most. New threads whose ids the server has made (UUIDv7) are not among these: they
-- come last in the order.
-- p_now: the time of the call. An account whose count continues has the next turn after those that wait for theirs.
-- Returns: nothing.
-- Locks:   those of agent.fold_counts; the caller holds the row of the count that has the correction.
create or replace function agent.count_account(
    p_account_id uuid,
    p_name text,
    p_now timestamptz,
    p_until timestamptz
) returns void
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $function$
declare
    c_threads constant integer := 20000;
    v_row     agent.account_counts;
    v_piece   record;
    v_is_done boolean;
begin
    perform agent.fold_counts(array[p_account_id], p_name);
    select c.* into strict v_row
      from agent.account_counts c
     where c.account_id = p_account_id
       and c.name = p_name
       and c.shard = -1;
    loop
        if p_name = 'threads' then
            select m.value, m.at_deployment_id, m.at_thread_id, (
                       select sum(c.value)::bigint
                         from agent.account_counts c
                        where c.account_id = p_account_id
                          and c.name = p_name
                   ) as stored
              into v_piece
              from agent.count_next_threads(p_account_id, v_row.at_deployment_id, v_row.at_thread_id, c_threads) m;
        else
            select m.value, null::uuid as at_deployment_id, null::uuid as at_thread_id, m.stored
              into v_piece
              from agent.compare_counts(array[p_account_id], p_name) m;
        end if;
        v_row.sum_value := v_row.sum_value + v_piece.value;
        v_row.at_deployment_id := v_piece.at_deployment_id;
        v_row.at_thread_id := v_piece.at_thread_id;
        v_is_done := v_row.at_deployment_id is null;
        exit when v_is_done or clock_timestamp() > p_until;
    end loop;
    update agent.account_counts c
       set value = c.value + case when v_is_done then v_row.sum_value - v_piece.stored else 0 end,
           counted_at = case when v_is_done then p_now else p_now - interval '1 minute' end,
           sum_value = case when v_is_done then 0 else v_row.sum_value end,
           at_deployment_id = v_row.at_deployment_id,
           at_thread_id = v_row.at_thread_id
     where c.account_id = p_account_id
       and c.name = p_name
       and c.shard = -1;
end
$function$;

comment on function agent.count_account(uuid, text, timestamptz, timestamptz) is 'Counts anew what an account has.';
