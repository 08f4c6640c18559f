-- SPDX-License-Identifier: Apache-2.0
-- Trigger function: an account that is closed stays so, as does a key that is revoked, and an invitation that is
-- revoked or used; a key never expires later than it was to. Also for the roles of servers and operators, which may
-- end them.
-- Returns: never; raises MA004.
-- Locks:   none.
create or replace function agent.refuse_end_change() returns trigger
language plpgsql security invoker set search_path = ''
as $function$
begin
    raise exception using
        errcode = 'MA004',
        message = format('an end in agent.%s is never undone', tg_table_name),
        hint = 'Create another account, key or invitation.';
end
$function$;

comment on function agent.refuse_end_change() is 'Refuses to undo the end of an account, a key or an invitation.';

create or replace trigger accounts_end
    before update on agent.accounts
    for each row
    when (old.closed_at is not null and new.closed_at is distinct from old.closed_at)
    execute function agent.refuse_end_change();

comment on trigger accounts_end on agent.accounts is 'A closed account stays so.';

create or replace trigger api_keys_end
    before update on agent.api_keys
    for each row
    when ((old.revoked_at is not null and new.revoked_at is distinct from old.revoked_at)
          or (old.expires_at is not null and (new.expires_at <= old.expires_at) is not true))
    execute function agent.refuse_end_change();

comment on trigger api_keys_end on agent.api_keys is
    'A revocation never changes, and an expiry is only brought forward.';

create or replace trigger invitations_end
    before update on agent.invitations
    for each row
    when ((old.revoked_at is not null
           and (new.revoked_at is distinct from old.revoked_at
                or new.revoked_by is distinct from old.revoked_by))
          or (old.used_at is not null
              and (new.used_at is distinct from old.used_at
                   or new.account_id is distinct from old.account_id)))
    execute function agent.refuse_end_change();

comment on trigger invitations_end on agent.invitations is 'A revocation, or a use, never changes.';
