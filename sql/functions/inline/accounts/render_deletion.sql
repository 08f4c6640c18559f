-- SPDX-License-Identifier: Apache-2.0
-- The record of the deletion of an account. The only definition of this record.
-- Returns: the record.
-- Locks:   none.
create or replace function agent.render_deletion(p_deletion agent.account_deletions) returns json
language sql stable parallel safe
-- No SET clause: it would keep the body from being inlined.
as $function$
    select json_build_object(
        'deletion_id', p_deletion.deletion_id,
        'account_id', p_deletion.account_id,
        'status', case when p_deletion.finished_at is null then 'deleting' else 'deleted' end,
        'requested_by', p_deletion.actor,
        'requested_at', agent.render_time(p_deletion.requested_at),
        'finished_at', agent.render_time(p_deletion.finished_at),
        'rows', p_deletion.deleted_rows,
        'logs_expire_at',
            agent.render_time(p_deletion.finished_at + pg_catalog.make_interval(days => p_deletion.log_days)),
        'backups_expire_at',
            agent.render_time(p_deletion.finished_at + pg_catalog.make_interval(days => p_deletion.backup_days)))
$function$;

comment on function agent.render_deletion(agent.account_deletions) is 'The record of the deletion of an account.';
