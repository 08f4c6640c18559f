-- SPDX-License-Identifier: Apache-2.0
-- GET /v1/account/export: a part of all rows of an account, those of the account first, then those of each deployment,
-- table by table in the order of their keys. p_cursor: of this part; null: the first one.
-- Returns: ok with lines of JSON, {"table": ..., "row": {...}}, or an empty text; next: the cursor of the next part,
--          null after the last one. A part is of one moment; the parts are not: rows that are written during the
--          export may be in it or not.
-- Bound:   p_bytes and one row; 1,000 rows, with threads that have no run; 50 tables. Held by `v_is_full`.
-- Locks:   none.
create or replace function agent.export_account(
    p_account_id uuid,
    p_cursor text,
    p_bytes bigint,
    out code text,
    out body text,
    out next text
)
language plpgsql stable security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off
set enable_mergejoin = off set enable_sort = off
as $function$
declare
    c_most_tables constant integer := 50;
    c_most_rows   constant integer := 1000;
    v_cursor      json := coalesce(p_cursor::json, '{"table":1}');
    v_deployment  uuid := v_cursor ->> 'deployment';
    v_number      integer := v_cursor ->> 'table';
    v_key         text[] := case json_typeof(v_cursor -> 'key')
                                when 'array' then array(select json_array_elements_text(v_cursor -> 'key'))
                            end;
    v_table       record;
    v_rows        refcursor;
    v_line        text;
    v_next_key    text[];
    v_lines       text[] := '{}';
    v_bytes       bigint := 0;
    v_tables      integer := 0;
    v_examined    integer := 0;
    v_is_full     boolean := false;
begin
    code := 'ok';
    loop
        select t.* into v_table
          from agent.list_exported_tables() t
         where t.number = v_number;
        if not found or (v_table.is_of_deployment and v_deployment is null) then
            select d.deployment_id into v_deployment
              from agent.deployments d
             where d.account_id = p_account_id
               and d.deployment_id > v_deployment is not false
             order by d.deployment_id
             limit 1;
            exit when not found;
            select min(t.number) into v_number
              from agent.list_exported_tables() t
             where t.is_of_deployment;
            continue;
        end if;
        open v_rows for
            execute agent.compose_export(v_table.name, v_table.keys, v_table.is_of_deployment, v_key)
              using case when v_table.is_of_deployment then v_deployment else p_account_id end;
        -- Row by row: a loop over a query fetches 50 at once, which may have 8 MB each.
        loop
            fetch v_rows into v_line, v_next_key;
            exit when not found;
            v_key := v_next_key;
            v_lines := array_append(v_lines, v_line);
            v_bytes := v_bytes + coalesce(octet_length(v_line), 0);
            v_examined := v_examined + 1;
            v_is_full := v_bytes >= p_bytes or v_examined >= c_most_rows;
            exit when v_is_full;
        end loop;
        close v_rows;
        v_tables := v_tables + 1;
        if not v_is_full then
            v_key := null;
            v_number := v_number + 1;
        end if;
        if v_is_full or v_tables = c_most_tables then
            next := json_build_object('deployment', v_deployment, 'table', v_number, 'key', v_key);
            exit;
        end if;
    end loop;
    body := array_to_string(v_lines, '');
end
$function$;

comment on function agent.export_account(uuid, text, bigint) is 'A part of all rows of an account.';
