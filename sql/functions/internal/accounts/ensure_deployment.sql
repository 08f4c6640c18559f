-- SPDX-License-Identifier: Apache-2.0
-- The deployment of a name under an account, the built-in one by default, created when it is missing. The id of a
-- new one is derived from account and name: when a database is replaced by an empty one, the ids that running
-- servers know stay valid. A stored id takes precedence. A new one is recorded: httpd.conf declares it. Concurrent
-- creations for an account with a limit come one after the other, so the limit is exact.
-- Returns: its deployment_id; null when the account does not exist or is closed, or has as many deployments as it may.
-- Locks:   the new row, and the account's against its deletion; an account with a limit; waits for another server that
--          creates it at the same time.
create or replace function agent.ensure_deployment(
    p_name text,
    p_account_id uuid default agent.built_in_account()
) returns uuid
language plpgsql volatile security invoker
set search_path = ''
as $function$
declare
    v_limit         bigint;
    v_digest        text;
    v_deployment_id uuid;
begin
    perform from agent.accounts a
      where a.account_id = p_account_id
        and a.closed_at is null;
    if not found then
        return null;
    end if;
    select d.deployment_id into v_deployment_id
      from agent.deployments d
     where d.account_id = p_account_id
       and d.name = p_name;
    if found then
        return v_deployment_id;
    end if;
    v_limit := agent.find_limit(p_account_id, 'deployments');
    if v_limit is not null then
        perform from agent.accounts a
          where a.account_id = p_account_id
            for no key update;
        -- The deployment of the name does not count: another server may have created it since.
        if v_limit <= (
            select count(*)
              from agent.deployments d
             where d.account_id = p_account_id
               and d.name <> p_name)
        then
            return null;
        end if;
    end if;
    -- UUIDv8 (RFC 9562): 120 bits of the digest.
    v_digest := encode(sha256(convert_to(p_account_id || '/' || p_name, 'UTF8')), 'hex');
    insert into agent.deployments (deployment_id, account_id, name)
    values (overlay(overlay(left(v_digest, 32) placing '8' from 13) placing '8' from 17)::uuid,
            p_account_id, p_name)
        on conflict do nothing
    returning deployment_id into v_deployment_id;
    if found then
        perform agent.record_audit(p_account_id, 'system', 'deployment.open', v_deployment_id::text,
                                   json_build_object('name', p_name));
        return v_deployment_id;
    end if;
    select d.deployment_id into strict v_deployment_id
      from agent.deployments d
     where d.account_id = p_account_id
       and d.name = p_name;
    return v_deployment_id;
end
$function$;

comment on function agent.ensure_deployment(text, uuid) is
    'The deployment of a name under an account, created when it is missing.';
