-- SPDX-License-Identifier: Apache-2.0
-- Closes an account, so that its keys and deployments are no longer valid, and has agent.sweep_accounts delete
-- it. p_deletion: its ids, digest, actor, and the days of logs and backups.
-- Returns: ok with the record of the deletion, that of an earlier one if there is one; account_not_found;
--          account_is_built_in; invalid_value: the caller must roll back, so that the account stays open.
-- Locks:   the account, then the new row.
create or replace function agent.begin_account_deletion(
    p_deletion agent.account_deletions,
    out code text,
    out body text
)
language plpgsql volatile security invoker
set search_path = ''
as $function$
declare
    v_row agent.account_deletions := p_deletion;
begin
    select e.code, e.body into code, body
      from agent.end_account(v_row.account_id, v_row.actor) e;
    if code <> 'ok' then
        return;
    end if;
    v_row.requested_at := agent.now();
    v_row.pass_at := v_row.requested_at;
    v_row.due_at := v_row.requested_at;
    v_row.step := 0;
    v_row.last_audit_id := 0;
    v_row.deleted_rows := coalesce(v_row.deleted_rows, '{}');
    insert into agent.account_deletions
    select v_row.*
        on conflict do nothing;
    if found then
        perform agent.record_audit(v_row.account_id, v_row.actor, 'account.delete', v_row.deletion_id::text);
    end if;
    body := (select agent.render_deletion(d)
               from agent.account_deletions d
              where d.account_id = v_row.account_id);
    if body is null then
        code := 'invalid_value';
        body := 'x-deletion-token: expected a text that was not sent for another account.';
    end if;
exception
    when check_violation then
        code := 'invalid_value';
        body := 'Logs and backups are kept from 0 to 3650 days.';
end
$function$;

comment on function agent.begin_account_deletion(agent.account_deletions) is 'Begins the deletion of an account.';
