-- SPDX-License-Identifier: Apache-2.0
-- The record of an action. The only definition of this record.
-- Returns: the record.
-- Locks:   none.
create or replace function agent.render_audit(p_row agent.audit_log) returns json
language sql stable parallel safe
-- No SET clause: it would keep the body from being inlined.
as $function$
    select json_build_object(
        'audit_id', p_row.audit_id,
        'at', agent.render_time(p_row.at),
        'actor', p_row.actor,
        'action', p_row.action,
        'object', p_row.object,
        'detail', p_row.detail)
$function$;

comment on function agent.render_audit(agent.audit_log) is 'The record of an action.';
