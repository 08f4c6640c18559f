-- SPDX-License-Identifier: Apache-2.0
-- Creates an account, in the region of this database. p_actor: who does it; p_detail: what is recorded beside it.
-- Returns: ok with the record of the account; account_exists for an id that is taken; invalid_value with the comment on
--          the check that failed.
-- Locks:   the new row.
create or replace function agent.insert_account(
    p_account_id uuid,
    p_name text,
    p_actor text,
    p_detail json,
    out code text,
    out body text
)
language plpgsql volatile security invoker
set search_path = ''
as $function$
declare
    v_account    agent.accounts;
    v_constraint text;
begin
    insert into agent.accounts (account_id, name, home_region, created_at)
    select p_account_id, coalesce(p_name, ''), r.region, agent.now()
      from agent.region r
        on conflict do nothing
    returning * into v_account;
    if not found then
        code := 'account_exists';
        return;
    end if;
    perform agent.record_audit(p_account_id, p_actor, 'account.create', p_account_id::text, p_detail);
    code := 'ok';
    body := agent.render_account(v_account);
exception
    when check_violation then
        code := 'invalid_value';
        get stacked diagnostics v_constraint = constraint_name;
        body := agent.describe_check(v_constraint);
end
$function$;

comment on function agent.insert_account(uuid, text, text, json) is 'Creates an account.';
