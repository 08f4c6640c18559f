-- SPDX-License-Identifier: Apache-2.0
-- Trigger function: an invitation that is revoked stays so, also for the role of operators, which may revoke it.
-- Returns: never; raises MA004.
-- Locks:   none.
create or replace function agent.refuse_revocation_change() returns trigger
language plpgsql security invoker set search_path = ''
as $function$
begin
    raise exception using
        errcode = 'MA004',
        message = format('invitation %s is revoked and stays so', old.invitation_id),
        hint = 'Create another invitation.';
end
$function$;

comment on function agent.refuse_revocation_change() is 'Refuses a change of a revocation.';

create or replace trigger invitations_revocation
    before update on agent.invitations
    for each row
    when (old.revoked_at is not null
          and (new.revoked_at is distinct from old.revoked_at
               or new.revoked_by is distinct from old.revoked_by))
    execute function agent.refuse_revocation_change();

comment on trigger invitations_revocation on agent.invitations is 'A revocation never changes.';
