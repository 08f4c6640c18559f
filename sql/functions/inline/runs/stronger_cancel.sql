-- SPDX-License-Identifier: Apache-2.0
-- The cancel flag of a leased run after another cancel was requested: rollback is never weakened to interrupt.
-- Returns: interrupt or rollback.
-- Locks:   none.
create or replace function agent.stronger_cancel(p_cancel text, p_action text) returns text
language sql immutable parallel safe
-- No SET clause: it would keep the body from being inlined.
as $function$
    select case p_action when 'rollback' then 'rollback' else coalesce(p_cancel, 'interrupt') end
$function$;

comment on function agent.stronger_cancel(text, text) is
    'The cancel flag of a leased run after another cancel was requested.';
