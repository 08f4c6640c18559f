-- SPDX-License-Identifier: Apache-2.0
-- The operator of this session as an actor of agent.audit_log: the role that logged in, whatever it has become.
-- Returns: text like `operator alice`.
-- Locks:   none.
create or replace function agent.render_operator() returns text
language sql stable parallel safe
-- No SET clause: it would keep the body from being inlined.
as $function$
    select 'operator ' || session_user
$function$;

comment on function agent.render_operator() is 'The operator of this session as an actor of agent.audit_log.';
