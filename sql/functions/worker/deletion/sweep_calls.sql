-- SPDX-License-Identifier: Apache-2.0
-- Ends calls that are unfinished 5 seconds after their deadline, because the server of their request is gone. Deletes
-- the records of calls a minute after they ended, and of calls whose thread was deleted.
-- Returns: number of calls ended or deleted: call again while it is not 0.
-- Locks:   of each call that it ends those of agent.end_call; the records that it deletes, skipping locked ones.
create or replace function agent.sweep_calls() returns integer
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $function$
declare
    -- Computed first: the clock is volatile, and an index condition must not be.
    v_now     timestamptz := agent.now();
    v_overdue timestamptz := v_now - interval '5 seconds';
    v_old     timestamptz := v_now - interval '1 minute';
    v_rows    tid[];
    v_bytes   bigint[];
    v_call    record;
    v_count   integer;
begin
    -- In the order of the rows.
    select array_agg(l.ctid), array_agg(l.bytes) into v_rows, v_bytes
      from (
            select d.ctid, d.finished_at, octet_length(coalesce(d.body, '')) as bytes
              from agent.calls d
             where d.finished_at is not null
               and d.finished_at < v_old
             order by d.finished_at
             limit 1000
               for update skip locked
           ) l;
    delete from agent.calls c
     where c.ctid = any (agent.fit_deletion(v_rows, v_bytes));
    get diagnostics v_count = row_count;

    -- One in a transaction: its thread stays locked until the commit, and two sweeps must not wait for each other.
    select c.deployment_id, c.thread_id, c.call_id into v_call
      from agent.calls c
     where c.finished_at is null
       and c.deadline_at < v_overdue
     order by c.deadline_at
     limit 1;
    if found then
        perform agent.end_call(v_call.deployment_id, v_call.thread_id, v_call.call_id);
        delete from agent.calls c
         where c.call_id = v_call.call_id
           and c.deployment_id is not distinct from v_call.deployment_id
           and c.finished_at is null;
        v_count := v_count + 1;
    end if;
    return v_count;
end
$function$;

comment on function agent.sweep_calls() is 'Ends overdue calls, and deletes old ones.';
