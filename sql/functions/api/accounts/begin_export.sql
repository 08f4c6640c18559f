-- SPDX-License-Identifier: Apache-2.0
-- Records that an account is exported, before the first part (agent.export_account). p_key_id: of the request.
-- p_export_id: new for each export; the caller may repeat a call whose result was lost.
-- Returns: ok; unknown_key: see agent.lock_actor; too_many_actions.
-- Locks:   the account.
create or replace function agent.begin_export(p_key_id text, p_export_id uuid, out code text, out body text)
language plpgsql volatile security invoker
set search_path = '' set enable_seqscan = off
as $function$
declare
    v_account_id uuid;
begin
    select l.code, l.account_id into code, v_account_id
      from agent.lock_actor(p_key_id) l;
    if code = 'ok'
       and not exists (
            select
              from agent.audit_log a
             where a.account_id = v_account_id
               and a.object = p_export_id::text
               and a.action = 'account.export') then
        body := agent.check_actions(v_account_id, agent.render_key_actor(p_key_id));
        if body is not null then
            code := 'too_many_actions';
            return;
        end if;
        perform agent.record_audit(v_account_id, agent.render_key_actor(p_key_id), 'account.export',
                                   p_export_id::text);
    end if;
end
$function$;

comment on function agent.begin_export(text, uuid) is 'Records that an account is exported.';
