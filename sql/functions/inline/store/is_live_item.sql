-- SPDX-License-Identifier: Apache-2.0
-- Whether an item of the store exists at a time: it has not expired. Nothing reads one that has; it is swept later.
-- Returns: true or false.
-- Locks:   none.
create or replace function agent.is_live_item(p_expires_at timestamptz, p_now timestamptz) returns boolean
language sql immutable parallel safe
-- No SET clause: it would keep the body from being inlined.
as $function$
    select p_expires_at is null or p_expires_at > p_now
$function$;

comment on function agent.is_live_item(timestamptz, timestamptz) is 'Whether an item of the store has not expired.';
