-- SPDX-License-Identifier: Apache-2.0
-- POST /v1/account/keys/{key_id}/rotate. p_key_id: of the request. p_request: the body, whose overlap_sec is a day
-- without the member. p_digest: as in agent.create_api_key.
-- Returns: as agent.replace_api_key, also key_not_found for a key of another account; unknown_key: see
--          agent.lock_actor.
-- Locks:   the account, then the old key, then the new row.
create or replace function agent.rotate_account_key(
    p_key_id text,
    p_old_key_id text,
    p_request json,
    p_new_key_id text,
    p_digest bytea,
    out code text,
    out body text
)
language plpgsql volatile security invoker
set search_path = ''
as $function$
declare
    c_overlap    constant double precision := 86400;
    v_account_id uuid;
begin
    select l.code, l.account_id into code, v_account_id
      from agent.lock_actor(p_key_id) l;
    if code <> 'ok' then
        return;
    end if;
    select r.code, r.body into code, body
      from agent.replace_api_key(
               v_account_id, p_old_key_id, p_new_key_id, p_digest,
               make_interval(secs => coalesce((p_request ->> 'overlap_sec')::double precision, c_overlap)),
               agent.render_key_actor(p_key_id)) r;
end
$function$;

comment on function agent.rotate_account_key(text, text, json, text, bytea) is
    'Creates an API key that takes the place of another one of the same account.';
