-- SPDX-License-Identifier: Apache-2.0
-- Creates an API key that takes the place of another one: the same account, kind, name, user, deployment, scopes and
-- lifetime. The old one is valid for p_overlap more, or until its own end when that is earlier.
-- Returns: ok with the record of the new key; key_not_found; key_revoked: the old one is not valid; account_closed;
--          key_exists for a new id that is taken; limit_exceeded; invalid_value with the reason.
-- Locks:   the account, then the old key, then the new row.
create or replace function agent.rotate_api_key(
    p_key_id text,
    p_new_key_id text,
    p_digest bytea,
    p_overlap interval,
    out code text,
    out body text
)
language plpgsql volatile security invoker
set search_path = ''
as $function$
begin
    select r.code, r.body into code, body
      from agent.replace_api_key(null, p_key_id, p_new_key_id, p_digest, p_overlap, agent.render_operator()) r;
end
$function$;

comment on function agent.rotate_api_key(text, text, bytea, interval) is
    'Creates an API key that takes the place of another one.';
