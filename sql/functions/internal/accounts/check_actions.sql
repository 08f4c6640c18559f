-- SPDX-License-Identifier: Apache-2.0
-- Whether an API key may do one more action that the audit log records: all keys of the account may do 1,000 within a
-- day, so that no loop of a client makes keys and rows without end. The end of a key or of the account is not checked:
-- each ends once. p_actor: who does it; others than keys may always. Actions of the same moment may exceed it.
-- Returns: null if it may; else the reason.
-- Locks:   none.
create or replace function agent.check_actions(p_account_id uuid, p_actor text) returns text
language plpgsql volatile security invoker
set search_path = '' set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off
as $function$
declare
    c_actions constant integer := 1000;
    v_now     constant timestamptz := agent.now();
    v_at      timestamptz;
begin
    if p_actor not like 'key %' then
        return null;
    end if;
    select l.at into v_at
      from agent.audit_log l
     where l.account_id = p_account_id
       and l.actor like 'key %'
     order by l.audit_id desc
    offset c_actions - 1
     limit 1;
    -- Not one of the future, from before the database's clock went back.
    return case
        when v_at > v_now - interval '1 day' and v_at <= v_now
        then format('The keys of the account have done %s actions within a day. Keys can be revoked.',
                    c_actions)
    end;
end
$function$;

comment on function agent.check_actions(uuid, text) is 'Whether an API key may do one more action.';
