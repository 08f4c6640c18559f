-- SPDX-License-Identifier: Apache-2.0
-- Deletes the records and events of runs of a thread that is being deleted, in their order, up to p_bytes: a record
-- counts as the stored size of its values plus 4,000 bytes, events as in agent.delete_events.
-- Returns: the rest of p_bytes; not above 0 when runs may be left.
-- Locks:   the caller holds the thread.
create or replace function agent.delete_runs(
    p_deployment_id uuid,
    p_thread_id uuid,
    p_bytes bigint
) returns bigint
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set enable_sort = off set plan_cache_mode = force_generic_plan
as $function$
declare
    v_left bigint := p_bytes;
    v_row  record;
    v_last record;
begin
    -- Run by run: a join could read the events of the whole day.
    for v_row in
        select r.thread_seq, r.run_id, r.events_bucket,
               4000 + coalesce(pg_column_size(r.input), 0) + coalesce(pg_column_size(r.command), 0)
               + coalesce(pg_column_size(r.config), 0) + coalesce(pg_column_size(r.context), 0)
               + coalesce(pg_column_size(r.metadata), 0) as bytes
          from agent.runs r
         where r.deployment_id = p_deployment_id
           and r.thread_id = p_thread_id
         order by r.thread_seq
    loop
        exit when v_left <= 0;
        v_left := agent.delete_events(p_deployment_id, v_row.events_bucket, v_row.run_id, v_left) - v_row.bytes;
        v_last := v_row;
    end loop;
    if v_last is not null then
        delete from agent.runs r
         where r.ctid = any (array(
                select x.ctid
                  from agent.runs x
                 where x.deployment_id = p_deployment_id
                   and x.thread_id = p_thread_id
                   and x.thread_seq <= v_last.thread_seq
                 order by x.thread_seq));
    end if;
    return v_left;
end
$function$;

comment on function agent.delete_runs(uuid, uuid, bigint) is 'Deletes runs of a thread that is being deleted.';
