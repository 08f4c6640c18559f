-- SPDX-License-Identifier: Apache-2.0
-- Records an action that concerns an account, in the transaction of the action.
-- Returns: nothing.
-- Locks:   the new row, and the account's against its deletion.
create or replace function agent.record_audit(
    p_account_id uuid,
    p_actor text,
    p_action text,
    p_object text,
    p_detail json default '{}'
) returns void
language plpgsql volatile security invoker
set search_path = ''
as $function$
begin
    insert into agent.audit_log (account_id, at, actor, action, object, detail)
    values (p_account_id, agent.now(), p_actor, p_action, p_object, p_detail);
end
$function$;

comment on function agent.record_audit(uuid, text, text, text, json) is 'Records an action that concerns an account.';
