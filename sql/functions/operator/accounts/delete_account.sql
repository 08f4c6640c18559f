-- SPDX-License-Identifier: Apache-2.0
-- Closes an account and begins its deletion. p_deletion_id: new for each call. p_log_days, p_backup_days: how long
-- logs and backups are kept; null: not known. The record of an earlier deletion gets those that it does not have.
-- Returns: ok with the record of the deletion, that of an earlier one if there is one; account_not_found;
--          account_is_built_in; invalid_value, also if the earlier one has other days.
-- Locks:   the account, then the row of its deletion.
create or replace function agent.delete_account(
    p_account_id uuid,
    p_deletion_id uuid,
    p_log_days integer,
    p_backup_days integer,
    out code text,
    out body text
)
language plpgsql volatile security invoker
set search_path = ''
as $function$
declare
    v_row agent.account_deletions;
    v_found agent.account_deletions;
begin
    v_row.account_id := p_account_id;
    v_row.deletion_id := p_deletion_id;
    v_row.actor := agent.render_operator();
    v_row.log_days := p_log_days;
    v_row.backup_days := p_backup_days;
    select b.code, b.body into code, body
      from agent.begin_account_deletion(v_row) b;
    if code <> 'ok' then
        return;
    end if;
    select d.* into strict v_found
      from agent.account_deletions d
     where d.account_id = p_account_id
       for update;
    if p_log_days <> v_found.log_days or p_backup_days <> v_found.backup_days then
        code := 'invalid_value';
        body := format('The deletion has begun with other times: logs are kept for %s days, backups for %s.',
                       coalesce(v_found.log_days::text, 'unknown'), coalesce(v_found.backup_days::text, 'unknown'));
        return;
    end if;
    update agent.account_deletions d
       set log_days = coalesce(d.log_days, p_log_days),
           backup_days = coalesce(d.backup_days, p_backup_days)
     where d.account_id = p_account_id
    returning agent.render_deletion(d) into body;
    if v_found.log_days is null and p_log_days is not null
       or v_found.backup_days is null and p_backup_days is not null then
        perform agent.record_audit(p_account_id, v_row.actor, 'deletion.change', v_found.deletion_id::text);
    end if;
exception
    when check_violation then
        code := 'invalid_value';
        body := 'Logs and backups are kept from 0 to 3650 days.';
end
$function$;

comment on function agent.delete_account(uuid, uuid, integer, integer) is 'Begins the deletion of an account.';
