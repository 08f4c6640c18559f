-- SPDX-License-Identifier: Apache-2.0
-- Creates an account, in the region of this database.
-- Returns: ok with the record of the account; account_exists for an id that is taken; invalid_value.
-- Locks:   the new row.
create or replace function agent.create_account(p_account_id uuid, p_name text, out code text, out body text)
language plpgsql volatile security invoker
set search_path = ''
as $function$
begin
    select i.code, i.body into code, body
      from agent.insert_account(p_account_id, p_name, agent.render_operator(), json_build_object('name', p_name)) i;
end
$function$;

comment on function agent.create_account(uuid, text) is 'Creates an account.';
