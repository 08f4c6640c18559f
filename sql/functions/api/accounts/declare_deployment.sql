-- SPDX-License-Identifier: Apache-2.0
-- The deployment that a host of httpd.conf serves, as agent.ensure_deployment, and why it does not.
-- Returns: ok with its deployment_id; deployment_not_found when the account does not exist or is closed;
--          limit_exceeded when the deployment is new and the account has as many as it may.
-- Locks:   as agent.ensure_deployment.
create or replace function agent.declare_deployment(
    p_name text,
    p_account_id uuid,
    out code text,
    out body text
)
language plpgsql volatile security invoker
set search_path = ''
as $function$
begin
    body := agent.ensure_deployment(p_name, p_account_id);
    if body is not null then
        code := 'ok';
        return;
    end if;
    select 'limit_exceeded', agent.render_limit('deployments', agent.find_limit(a.account_id, 'deployments'))
      into code, body
      from agent.accounts a
     where a.account_id = p_account_id
       and a.closed_at is null;
    code := coalesce(code, 'deployment_not_found');
end
$function$;

comment on function agent.declare_deployment(text, uuid) is 'The deployment that a host of httpd.conf serves.';
