-- SPDX-License-Identifier: Apache-2.0
-- GET /v1/account/deletion: the deletion of an account. p_digest: SHA-256 of the deletion token.
-- Returns: ok with the record; deletion_not_found.
-- Locks:   none.
create or replace function agent.get_deletion(p_digest bytea, out code text, out body text)
language plpgsql stable security invoker
set search_path = ''
as $function$
begin
    select 'ok', agent.render_deletion(d) into code, body
      from agent.account_deletions d
     where d.digest = p_digest;
    code := coalesce(code, 'deletion_not_found');
end
$function$;

comment on function agent.get_deletion(bytea) is 'The deletion of an account.';
