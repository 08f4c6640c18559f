-- SPDX-License-Identifier: Apache-2.0
-- The last piece of a pass over an account: deletes its keys, invitations, counts and measure; empties the details of
-- its audit log, which may have names; and in the last pass its deployments and its name. A piece that leaves a count
-- of which a writer holds a row is due again after a second.
-- Returns: the deletion as it is then.
-- Locks:   the rows; of counts without waiting (agent.delete_count).
create or replace function agent.delete_account_records(
    p_deletion agent.account_deletions,
    p_is_last boolean
) returns agent.account_deletions
language plpgsql volatile security invoker
set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off set enable_bitmapscan = off
as $function$
declare
    c_rows  constant integer := 500;
    c_pause constant interval := interval '1 second';
    v_row   agent.account_deletions := p_deletion;
    v_last  bigint;
    v_count integer;
    v_name  text;
    v_left  boolean := false;
begin
    delete from agent.api_keys k
     where k.ctid = any (array(
            select x.ctid from agent.api_keys x where x.account_id = v_row.account_id order by x.key_id limit c_rows));
    get diagnostics v_count = row_count;
    v_row.deleted_rows := agent.add_deleted_rows(v_row.deleted_rows, 'api_keys', v_count);
    if v_count = c_rows then
        return v_row;
    end if;
    select max(l.audit_id) into v_last
      from (
            select x.audit_id
              from agent.audit_log x
             where x.account_id = v_row.account_id
               and x.audit_id > v_row.last_audit_id
             order by x.audit_id
             limit c_rows
           ) l;
    if v_last is not null then
        update agent.audit_log l
           set detail = '{}'
         where l.account_id = v_row.account_id
           and l.audit_id > v_row.last_audit_id
           and l.audit_id <= v_last
           and l.detail::text <> '{}';
        v_row.last_audit_id := v_last;
        return v_row;
    end if;
    delete from agent.invitations i
     where i.account_id = v_row.account_id;
    get diagnostics v_count = row_count;
    v_row.deleted_rows := agent.add_deleted_rows(v_row.deleted_rows, 'invitations', v_count);
    for v_name in
        select distinct c.name
          from agent.account_counts c
         where c.account_id = v_row.account_id
    loop
        v_left := not agent.delete_count(v_row.account_id, v_name) or v_left;
    end loop;
    if v_left then
        v_row.due_at := v_row.due_at + c_pause;
        return v_row;
    end if;
    delete from agent.account_measures m
     where m.account_id = v_row.account_id;
    v_row.step := v_row.step + 1;
    if p_is_last then
        delete from agent.deployments d
         where d.account_id = v_row.account_id;
        get diagnostics v_count = row_count;
        v_row.deleted_rows := agent.add_deleted_rows(v_row.deleted_rows, 'deployments', v_count);
        update agent.accounts a
           set name = 'deleted'
         where a.account_id = v_row.account_id;
    end if;
    return v_row;
end
$function$;

comment on function agent.delete_account_records(agent.account_deletions, boolean) is
    'Deletes what belongs to an account itself.';
