-- SPDX-License-Identifier: Apache-2.0
-- PATCH /v1/account: renames or closes the account of an API key. p_key_id: of the request. p_request: the body.
-- Returns: ok with the record of the account; unknown_key: see agent.lock_actor; account_is_built_in;
--          too_many_actions; invalid_value with the comment on the check that failed.
-- Locks:   the account.
create or replace function agent.update_account(p_key_id text, p_request json, out code text, out body text)
language plpgsql volatile security invoker
set search_path = ''
as $function$
declare
    v_account_id uuid;
    v_actor      text := agent.render_key_actor(p_key_id);
    v_account    agent.accounts;
    v_constraint text;
begin
    select l.code, l.account_id into code, v_account_id
      from agent.lock_actor(p_key_id) l;
    if code <> 'ok' then
        return;
    end if;
    if (p_request ->> 'closed')::boolean and v_account_id = agent.built_in_account() then
        code := 'account_is_built_in';
        return;
    end if;
    select a.* into v_account
      from agent.accounts a
     where a.account_id = v_account_id;
    if p_request ->> 'name' <> v_account.name then
        body := agent.check_actions(v_account_id, v_actor);
        if body is not null then
            code := 'too_many_actions';
            return;
        end if;
        update agent.accounts a
           set name = p_request ->> 'name'
         where a.account_id = v_account_id
        returning a.* into v_account;
        perform agent.record_audit(v_account_id, v_actor, 'account.rename', v_account_id::text,
                                   json_build_object('name', v_account.name));
    end if;
    code := 'ok';
    body := agent.render_account(v_account);
    if (p_request ->> 'closed')::boolean then
        select e.code, e.body into code, body
          from agent.end_account(v_account_id, v_actor) e;
    end if;
exception
    when check_violation then
        code := 'invalid_value';
        get stacked diagnostics v_constraint = constraint_name;
        body := agent.describe_check(v_constraint);
end
$function$;

comment on function agent.update_account(text, json) is 'Renames or closes the account of an API key.';
