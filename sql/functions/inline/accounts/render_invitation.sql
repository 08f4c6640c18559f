-- SPDX-License-Identifier: Apache-2.0
-- The record of an invitation, without its digest. p_region: the region of this database. The only definition of this
-- record.
-- Returns: the record.
-- Locks:   none.
create or replace function agent.render_invitation(p_invitation agent.invitations, p_region text) returns json
language sql stable parallel safe
-- No SET clause: it would keep the body from being inlined.
as $function$
    select json_build_object(
        'invitation_id', p_invitation.invitation_id,
        'region', p_region,
        'created_by', p_invitation.created_by,
        'created_at', agent.render_time(p_invitation.created_at),
        'expires_at', agent.render_time(p_invitation.expires_at),
        'used_at', agent.render_time(p_invitation.used_at),
        'account_id', p_invitation.account_id,
        'revoked_at', agent.render_time(p_invitation.revoked_at),
        'revoked_by', p_invitation.revoked_by)
$function$;

comment on function agent.render_invitation(agent.invitations, text) is
    'The record of an invitation, without its digest.';
