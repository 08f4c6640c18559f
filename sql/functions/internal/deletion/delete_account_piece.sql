-- SPDX-License-Identifier: Apache-2.0
-- Deletes a piece of an account. deployment_id and step of a deletion say what is next: 0: the queue of all
-- deployments; of a deployment, from 1 on, the tables of agent.list_deleted_tables; after the last one, 1000: the
-- records of the account; 1001: nothing, the pass has ended. A piece that waits for other transactions is due later.
-- Returns: the deletion as it is then.
-- Locks:   see the functions that it calls.
create or replace function agent.delete_account_piece(
    p_deletion agent.account_deletions,
    p_is_last boolean,
    p_end timestamptz
) returns agent.account_deletions
language plpgsql volatile security invoker
set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off set enable_bitmapscan = off
set enable_sort = off
as $function$
declare
    c_records constant integer := 1000;
    c_pause   constant interval := interval '1 second';
    v_row     agent.account_deletions := p_deletion;
    v_table   record;
    v_part    record;
    v_count   integer;
    v_done    boolean;
begin
    if v_row.step = c_records then
        return agent.delete_account_records(v_row, p_is_last);
    elsif v_row.step = 0 then
        v_count := agent.delete_account_queue(array(
            select d.deployment_id from agent.deployments d where d.account_id = v_row.account_id));
        v_row.deleted_rows := agent.add_deleted_rows(v_row.deleted_rows, 'run_queue', coalesce(v_count, 0));
        v_done := v_count = 0;
    else
        select t.* into v_table
          from agent.list_deleted_tables() t
         where t.number = v_row.step;
        if v_table.name = 'threads' then
            select * into v_part
              from agent.delete_account_threads(v_row.deployment_id, p_end);
            v_row.deleted_rows := agent.add_deleted_rows(
                agent.add_deleted_rows(v_row.deleted_rows, 'runs', v_part.runs), 'threads', v_part.threads);
            v_row.due_at := v_row.due_at + case when v_part.is_locked then c_pause else interval '0' end;
        elsif v_table.name is not null then
            select * into v_part
              from agent.delete_account_rows(v_row.deployment_id, v_table.name, v_table.keys, v_table.condition, p_end);
            v_row.deleted_rows := agent.add_deleted_rows(v_row.deleted_rows, v_table.name, v_part.deleted);
        end if;
        if v_table.name is not null then
            v_row.step := v_row.step + v_part.is_done::integer;
            return v_row;
        end if;
        v_done := true;
    end if;
    if v_done then
        select d.deployment_id into v_row.deployment_id
          from agent.deployments d
         where d.account_id = v_row.account_id
           and d.deployment_id > v_row.deployment_id is not false
         order by d.deployment_id
         limit 1;
        v_row.step := case when v_row.deployment_id is null then c_records else 1 end;
    elsif v_count is null then
        v_row.due_at := v_row.due_at + c_pause;
    end if;
    return v_row;
end
$function$;

comment on function agent.delete_account_piece(agent.account_deletions, boolean, timestamptz) is
    'Deletes a piece of an account.';
