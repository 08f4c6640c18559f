-- SPDX-License-Identifier: Apache-2.0
-- Deletes a piece of an account whose deletion has begun, for 50 ms, and stores the position, so that any server can
-- continue. A request that an account's key began before it was closed may still write: an hour later a second pass
-- deletes that, with the deployments, and ends the deletion. p_account_id: that account; null: the one that has waited
-- longest.
-- A piece that fails is tried again in 10 minutes, with a warning in PostgreSQL's log: other accounts continue.
-- With the owner's rights: the role of a server cannot delete usage, the audit log or deployments otherwise.
-- Returns: 1: call again; 0: nothing is due.
-- Locks:   the deletion, skipping locked ones; see agent.delete_account_piece.
create or replace function agent.sweep_accounts(p_account_id uuid default null) returns integer
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off set enable_bitmapscan = off
as $function$
declare
    c_grace   constant interval := interval '1 hour';
    c_end     constant integer := 1001;
    v_now     timestamptz := agent.now();
    v_until   timestamptz := clock_timestamp() + interval '50 milliseconds';
    v_row     agent.account_deletions;
    v_old     agent.account_deletions;
    v_is_last boolean;
begin
    select d.* into v_row
      from agent.account_deletions d
     where d.finished_at is null
       and d.due_at <= v_now
       and (d.account_id = p_account_id) is not false
     order by d.due_at
     limit 1
       for update skip locked;
    if not found then
        return 0;
    end if;
    v_row.due_at := v_now;
    v_is_last := v_row.pass_at >= v_row.requested_at + c_grace;
    v_old := v_row;
    begin
        loop
            v_row := agent.delete_account_piece(v_row, v_is_last, v_until);
            exit when v_row.step = c_end or v_row.due_at > v_now or clock_timestamp() > v_until;
        end loop;
    exception when others or query_canceled then
        raise warning 'agent: a piece of the deletion of account % failed: %', v_old.account_id, sqlerrm;
        -- From the first deployment on: rows may have come after their step.
        v_row := v_old;
        v_row.step := 0;
        v_row.deployment_id := null;
        v_row.due_at := v_now + interval '10 minutes';
    end;
    if v_row.step = c_end and v_is_last then
        v_row.finished_at := v_now;
        insert into agent.audit_log (account_id, at, actor, action, object)
        values (v_row.account_id, v_now, 'system', 'account.deleted', v_row.deletion_id::text);
    elsif v_row.step = c_end then
        v_row.pass_at := greatest(v_now, v_row.requested_at + c_grace);
        v_row.due_at := v_row.pass_at;
        v_row.step := 0;
        v_row.last_audit_id := 0;
    end if;
    update agent.account_deletions d
       set deployment_id = v_row.deployment_id,
           step = v_row.step,
           last_audit_id = v_row.last_audit_id,
           deleted_rows = v_row.deleted_rows,
           pass_at = v_row.pass_at,
           due_at = v_row.due_at,
           finished_at = v_row.finished_at
     where d.deletion_id = v_row.deletion_id;
    return 1;
end
$function$;

comment on function agent.sweep_accounts(uuid) is 'Deletes a piece of an account.';
