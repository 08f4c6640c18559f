-- SPDX-License-Identifier: Apache-2.0
-- Revokes an invitation that was not used: the one with p_invitation_id or, if that is null, with p_digest.
-- Returns: ok with the record of the invitation, also when it was revoked before; invitation_not_found;
--          invitation_used.
-- Locks:   the invitation.
create or replace function agent.revoke_invitation(
    p_invitation_id uuid,
    p_digest bytea,
    out code text,
    out body text
)
language plpgsql volatile security invoker
set search_path = ''
as $function$
declare
    v_digest     bytea := p_digest;
    v_invitation agent.invitations;
begin
    if p_invitation_id is not null then
        select i.digest into v_digest
          from agent.invitations i
         where i.invitation_id = p_invitation_id;
    end if;
    update agent.invitations i
       set revoked_at = agent.now(),
           revoked_by = agent.render_operator()
     where i.digest = v_digest
       and i.used_at is null
       and i.revoked_at is null
    returning i.* into v_invitation;
    if not found then
        select i.* into v_invitation
          from agent.invitations i
         where i.digest = v_digest;
        if not found then
            code := 'invitation_not_found';
            return;
        end if;
        if v_invitation.used_at is not null then
            code := 'invitation_used';
            body := 'The invitation has created the account ' || v_invitation.account_id || '.';
            return;
        end if;
    end if;
    code := 'ok';
    body := agent.render_invitation(v_invitation, (select r.region from agent.region r));
end
$function$;

comment on function agent.revoke_invitation(uuid, bytea) is 'Revokes an invitation.';
