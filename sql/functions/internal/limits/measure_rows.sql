-- SPDX-License-Identifier: Apache-2.0
-- Measures the next rows of an account, of one table of one deployment: 5,000 at most. The tables are those of
-- agent.export_account with data of deployments; usage is the service's own.
-- p_measure: the position, which is advanced; without a table the measurement begins.
-- Returns: the measure; without a table when all is measured.
-- Locks:   none.
create or replace function agent.measure_rows(p_measure agent.account_measures) returns agent.account_measures
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off
set enable_mergejoin = off set enable_sort = off
as $function$
declare
    c_rows  constant integer := 5000;
    v_row   agent.account_measures := p_measure;
    v_table record;
    v_count bigint;
    v_bytes bigint;
begin
    select t.* into v_table
      from agent.list_exported_tables() t
     where t.number >= v_row.table_number
       and t.is_of_deployment
       and t.name <> 'usage_events'
     order by t.number
     limit 1;
    if not found or v_row.at_deployment_id is null then
        select d.deployment_id into v_row.at_deployment_id
          from agent.deployments d
         where d.account_id = v_row.account_id
           and d.deployment_id > v_row.at_deployment_id is not false
         order by d.deployment_id
         limit 1;
        v_row.table_number := case when found then 1 end;
        v_row.last_key := null;
        return v_row;
    end if;
    execute agent.compose_measure(v_table.name, v_table.keys, v_row.last_key, c_rows)
       into v_count, v_bytes, v_row.last_key
      using v_row.at_deployment_id;
    v_row.sum_bytes := v_row.sum_bytes + v_bytes;
    v_row.table_number := v_table.number + case when v_row.last_key is null then 1 else 0 end;
    return v_row;
end
$function$;

comment on function agent.measure_rows(agent.account_measures) is 'Measures the next rows of an account.';
