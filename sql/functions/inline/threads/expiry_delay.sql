-- SPDX-License-Identifier: Apache-2.0
-- How long a temporary thread is kept after the end of its last run.
-- Returns: the delay; a client whose connection broke can fetch the result during it.
-- Locks:   none.
create or replace function agent.expiry_delay() returns interval
language sql immutable parallel safe
-- No SET clause: it would keep the body from being inlined.
as $function$
    select interval '120 seconds'
$function$;

comment on function agent.expiry_delay() is
    'How long a temporary thread is kept after the end of its last run.';
