-- SPDX-License-Identifier: Apache-2.0
-- Deletes rows of a table of agent.list_deleted_tables until p_end: ten at a time, since each may have megabytes, and
-- more while they are small, since each statement passes over the rows that those before it have deleted.
-- Returns: number of rows; is_done: none is left.
-- Locks:   the rows.
create or replace function agent.delete_account_rows(
    p_deployment_id uuid,
    p_name text,
    p_keys text,
    p_condition text,
    p_end timestamptz,
    out deleted bigint,
    out is_done boolean
)
language plpgsql volatile security invoker
set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off set enable_bitmapscan = off
set enable_sort = off set enable_hashjoin = off set enable_mergejoin = off
as $function$
declare
    c_few   constant integer := 10;
    c_many  constant integer := 1000;
    v_rows  integer := c_few;
    v_begun timestamptz;
    -- The rows of a table with partitions have no ctid that is unique.
    v_sql   text := case p_name
        when 'run_events' then
            $$delete from agent.run_events t
               using (select x.bucket, x.run_id, x.seq
                        from agent.run_events x
                       where x.deployment_id = $1
                       order by x.deployment_id, x.bucket, x.run_id, x.seq
                       limit $2) k
               where t.deployment_id = $1
                 and t.bucket = k.bucket
                 and t.run_id = k.run_id
                 and t.seq = k.seq$$
        else format(
            $$delete from agent.%1$I t
               where t.ctid = any (array(
                      select x.ctid
                        from agent.%1$I x
                       where x.deployment_id = $1 %3$s
                       order by %2$s
                       limit $2))$$,
            p_name, p_keys, p_condition)
        end;
    v_count integer;
begin
    deleted := 0;
    loop
        v_begun := clock_timestamp();
        execute v_sql using p_deployment_id, v_rows;
        get diagnostics v_count = row_count;
        deleted := deleted + v_count;
        is_done := v_count < v_rows;
        exit when is_done or clock_timestamp() > p_end;
        v_rows := case when clock_timestamp() < v_begun + interval '5 milliseconds' then least(2 * v_rows, c_many)
                       else c_few end;
    end loop;
end
$function$;

comment on function agent.delete_account_rows(uuid, text, text, text, timestamptz) is
    'Deletes rows of a deployment that is deleted.';
