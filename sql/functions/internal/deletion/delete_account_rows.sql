-- SPDX-License-Identifier: Apache-2.0
-- Deletes rows of a table of agent.list_deleted_tables until p_end: 1,000 in a statement, but no more bytes than
-- agent.deletion_bytes(). Not fewer, since each statement passes over the rows that those before it have deleted.
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
    c_rows  constant integer := 1000;
    v_sql   text := agent.compose_deletion(p_name, p_keys, p_condition);
    v_found integer;
    v_count integer;
begin
    deleted := 0;
    loop
        execute v_sql into v_found, v_count using p_deployment_id, c_rows;
        deleted := deleted + v_count;
        is_done := v_found < c_rows and v_count = v_found;
        exit when is_done or clock_timestamp() > p_end;
    end loop;
end
$function$;

comment on function agent.delete_account_rows(uuid, text, text, text, timestamptz) is
    'Deletes rows of a deployment that is deleted.';
