-- SPDX-License-Identifier: Apache-2.0
-- Closes an account and begins its deletion. p_deletion_id: new for each call. p_log_days, p_backup_days: how long
-- logs and backups are kept; null: not known.
-- Returns: ok with the record of the deletion, that of an earlier one if there is one; account_not_found;
--          account_is_built_in; invalid_value.
-- Locks:   the account, then the new row.
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
begin
    v_row.account_id := p_account_id;
    v_row.deletion_id := p_deletion_id;
    v_row.actor := agent.render_operator();
    v_row.log_days := p_log_days;
    v_row.backup_days := p_backup_days;
    select b.code, b.body into code, body
      from agent.begin_account_deletion(v_row) b;
end
$function$;

comment on function agent.delete_account(uuid, uuid, integer, integer) is 'Begins the deletion of an account.';
