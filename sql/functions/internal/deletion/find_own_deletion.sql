-- SPDX-License-Identifier: Apache-2.0
-- The deletion that a request of agent.delete_own_account has begun before. The arguments are those of that function.
-- Returns: ok with the record; else null.
-- Locks:   none.
create or replace function agent.find_own_deletion(
    p_key_id text,
    p_deletion_id uuid,
    p_digest bytea,
    out code text,
    out body text
)
language plpgsql volatile security invoker
set search_path = ''
as $function$
begin
    select 'ok', agent.render_deletion(d) into code, body
      from agent.account_deletions d
     where d.deletion_id = p_deletion_id
        or (d.digest = p_digest
            and d.account_id = (select k.account_id from agent.api_keys k where k.key_id = p_key_id));
end
$function$;

comment on function agent.find_own_deletion(text, uuid, bytea) is 'The deletion that a request has begun before.';
