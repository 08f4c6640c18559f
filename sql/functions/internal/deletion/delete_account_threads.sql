-- SPDX-License-Identifier: Apache-2.0
-- Deletes threads of a deployment with their runs, whose other rows agent.sweep_accounts deletes later, until p_end, or
-- up to one that another transaction holds: in a statement 100 runs, no more than agent.deletion_bytes().
-- Returns: numbers of runs and threads; is_done: none is left; is_locked: others hold those that are left.
-- Locks:   the threads in the order of their keys, skipping a locked one, then their runs.
create or replace function agent.delete_account_threads(
    p_deployment_id uuid,
    p_end timestamptz,
    out runs bigint,
    out threads bigint,
    out is_done boolean,
    out is_locked boolean
)
language plpgsql volatile security invoker
set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off set enable_bitmapscan = off
set enable_sort = off set plan_cache_mode = force_generic_plan
as $function$
declare
    c_runs      constant integer := 100;
    v_thread_id uuid;
    v_count     integer;
begin
    runs := 0;
    threads := 0;
    is_locked := false;
    loop
        select t.thread_id into v_thread_id
          from agent.threads t
         where t.deployment_id = p_deployment_id
         order by t.thread_id
         limit 1
           for update skip locked;
        if not found then
            is_locked := exists (select from agent.threads t where t.deployment_id = p_deployment_id);
            is_done := not is_locked;
            return;
        end if;
        delete from agent.runs r
         where r.ctid = any (array(
                select f.id
                  from (
                        select x.id, x.thread_seq, min(x.thread_seq) over () as first,
                               sum(x.bytes) over (order by x.thread_seq) as together
                          from (
                                -- As agent.delete_runs counts them.
                                select i.ctid as id, i.thread_seq,
                                       4000 + coalesce(pg_column_size(i.input), 0)
                                       + coalesce(pg_column_size(i.command), 0)
                                       + coalesce(pg_column_size(i.config), 0)
                                       + coalesce(pg_column_size(i.context), 0)
                                       + coalesce(pg_column_size(i.metadata), 0) as bytes
                                  from agent.runs i
                                 where i.thread_id = v_thread_id
                                   and i.deployment_id = p_deployment_id
                                 order by i.thread_seq
                                 limit c_runs
                               ) x
                       ) f
                 where f.thread_seq = f.first
                    or f.together <= agent.deletion_bytes()));
        get diagnostics v_count = row_count;
        runs := runs + v_count;
        if v_count < c_runs and not exists (
                select from agent.runs i
                 where i.thread_id = v_thread_id
                   and i.deployment_id = p_deployment_id)
        then
            delete from agent.threads t
             where t.deployment_id = p_deployment_id
               and t.thread_id = v_thread_id;
            threads := threads + 1;
        end if;
        exit when clock_timestamp() > p_end;
    end loop;
    is_done := false;
end
$function$;

comment on function agent.delete_account_threads(uuid, timestamptz) is 'Deletes threads of a deployment.';
