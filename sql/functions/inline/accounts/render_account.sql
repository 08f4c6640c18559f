-- SPDX-License-Identifier: Apache-2.0
-- The record of an account. The only definition of this record.
-- Returns: the record.
-- Locks:   none.
create or replace function agent.render_account(p_account agent.accounts) returns json
language sql stable parallel safe
-- No SET clause: it would keep the body from being inlined.
as $function$
    select json_build_object(
        'account_id', p_account.account_id,
        'name', p_account.name,
        'home_region', p_account.home_region,
        'created_at', agent.render_time(p_account.created_at),
        'closed_at', agent.render_time(p_account.closed_at))
$function$;

comment on function agent.render_account(agent.accounts) is 'The record of an account.';
