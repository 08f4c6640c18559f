-- SPDX-License-Identifier: Apache-2.0
-- Creates an invitation, with which one account can be created. p_digest: SHA-256 of its text, which is not sent here.
-- Returns: ok with the record of the invitation; invitation_exists for an id or a digest that is taken; invalid_value.
-- Locks:   the new row.
create or replace function agent.create_invitation(
    p_invitation_id uuid,
    p_digest bytea,
    p_lifetime interval,
    out code text,
    out body text
)
language plpgsql volatile security invoker
set search_path = ''
as $function$
declare
    v_invitation agent.invitations;
begin
    insert into agent.invitations (invitation_id, digest, created_by, created_at, expires_at)
    select p_invitation_id, p_digest, agent.render_operator(), n.now, n.now + p_lifetime
      from (select agent.now()) n (now)
        on conflict do nothing
    returning * into v_invitation;
    if not found then
        code := 'invitation_exists';
        return;
    end if;
    code := 'ok';
    body := agent.render_invitation(v_invitation, (select r.region from agent.region r));
exception
    when check_violation or not_null_violation then
        code := 'invalid_value';
        body := 'Expected 32 bytes as digest and an end that is not in the past.';
end
$function$;

comment on function agent.create_invitation(uuid, bytea, interval) is 'Creates an invitation.';
