-- SPDX-License-Identifier: Apache-2.0
-- Trigger function: a key or an invitation that is revoked stays so, also for the role of operators, which may revoke
-- it.
-- Returns: never; raises MA004.
-- Locks:   none.
create or replace function agent.refuse_revocation_change() returns trigger
language plpgsql security invoker set search_path = ''
as $function$
begin
    raise exception using
        errcode = 'MA004',
        message = format('a revocation in agent.%s never changes', tg_table_name),
        hint = 'Create another key or invitation.';
end
$function$;

comment on function agent.refuse_revocation_change() is 'Refuses a change of a revocation.';

create or replace trigger api_keys_revocation
    before update on agent.api_keys
    for each row
    when (old.revoked_at is not null and new.revoked_at is distinct from old.revoked_at)
    execute function agent.refuse_revocation_change();

comment on trigger api_keys_revocation on agent.api_keys is 'A revocation never changes.';

create or replace trigger invitations_revocation
    before update on agent.invitations
    for each row
    when (old.revoked_at is not null
          and (new.revoked_at is distinct from old.revoked_at
               or new.revoked_by is distinct from old.revoked_by))
    execute function agent.refuse_revocation_change();

comment on trigger invitations_revocation on agent.invitations is 'A revocation never changes.';
