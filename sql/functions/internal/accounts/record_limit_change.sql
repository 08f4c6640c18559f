-- SPDX-License-Identifier: Apache-2.0
-- Trigger function: records a limit of one account that has another value than before. The limits of all accounts
-- concern none of them, and httpd.conf may name an account that does not exist.
-- Returns: the row.
-- Locks:   those of agent.record_audit.
create or replace function agent.record_limit_change() returns trigger
language plpgsql security invoker set search_path = ''
as $function$
declare
    v_replaced bigint;
begin
    if tg_op = 'UPDATE' then
        v_replaced := old.value;
    end if;
    if new.value is distinct from v_replaced
       and exists (select from agent.accounts a where a.account_id = new.account_id) then
        perform agent.record_audit(new.account_id, 'system', 'limit.set', new.name,
                                   json_build_object('value', new.value, 'replaced', v_replaced));
    end if;
    return new;
end
$function$;

comment on function agent.record_limit_change() is 'Records a limit of an account that has changed.';

create or replace trigger limit_recorded
    after insert or update of value on agent.account_limits
    for each row
    execute function agent.record_limit_change();

comment on trigger limit_recorded on agent.account_limits is 'Who changed a limit is in the audit log.';
