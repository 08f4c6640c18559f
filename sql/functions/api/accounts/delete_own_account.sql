-- SPDX-License-Identifier: Apache-2.0
-- DELETE /v1/account: closes the account of an API key and begins its deletion, with up to 200 runs of its queue, those
-- first that workers execute. p_key_id: of the request. p_request: the body, whose confirm must be the id of the
-- account, a UUID. p_deletion_id: new for each request; the caller may repeat a call whose result was lost. p_digest:
-- SHA-256 of the deletion token, which gives access to the record when no key is valid; a client that chose it may
-- repeat its request.
-- p_log_days, p_backup_days: how long logs and backups are kept; null: not known.
-- Returns: ok with the record of the deletion; unknown_key: see agent.lock_actor; invalid_value with the reason;
--          account_is_built_in.
-- Locks:   the account, then threads and queue rows, skipping locked ones, then the new row.
create or replace function agent.delete_own_account(
    p_key_id text,
    p_request json,
    p_deletion_id uuid,
    p_digest bytea,
    p_log_days integer,
    p_backup_days integer,
    out code text,
    out body text
)
language plpgsql volatile security invoker
set search_path = ''
as $function$
declare
    v_row agent.account_deletions;
begin
    select f.code, f.body into code, body
      from agent.find_own_deletion(p_key_id, p_deletion_id, p_digest) f;
    if code is not null then
        return;
    end if;
    select l.code, l.account_id into code, v_row.account_id
      from agent.lock_actor(p_key_id) l;
    if code <> 'ok' then
        -- The request may have waited for one with the same text, which has closed the account.
        select f.code, f.body into code, body
          from agent.find_own_deletion(p_key_id, p_deletion_id, p_digest) f;
        code := coalesce(code, 'unknown_key');
        return;
    end if;
    if (lower(p_request ->> 'confirm') = v_row.account_id::text) is not true then
        code := 'invalid_value';
        body := '/confirm: expected the id of the account, a UUID: GET /v1/account returns it as account_id.';
        return;
    end if;
    v_row.deletion_id := p_deletion_id;
    v_row.digest := p_digest;
    v_row.actor := agent.render_key_actor(p_key_id);
    v_row.log_days := p_log_days;
    v_row.backup_days := p_backup_days;
    begin
        v_row.deleted_rows := agent.add_deleted_rows('{}', 'run_queue', coalesce(agent.delete_account_queue(array(
            select d.deployment_id from agent.deployments d where d.account_id = v_row.account_id)), 0));
        select b.code, b.body into code, body
          from agent.begin_account_deletion(v_row) b;
        if code <> 'ok' then
            -- A refusal is not an error: what was deleted from the queue would be committed with it.
            raise exception using errcode = 'MA003', message = 'the deletion is refused';
        end if;
    exception
        when sqlstate 'MA003' then
            null;
    end;
end
$function$;

comment on function agent.delete_own_account(text, json, uuid, bytea, integer, integer) is
    'Begins the deletion of the account of an API key.';
