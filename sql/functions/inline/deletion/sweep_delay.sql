-- SPDX-License-Identifier: Apache-2.0
-- The interval at which a thread with unused blobs is examined. A blob is kept for one interval, and while its thread
-- has an unfinished run, since the put that names it may follow.
-- Returns: an interval.
-- Locks:   none.
create or replace function agent.sweep_delay() returns interval
language sql immutable parallel safe
-- No SET clause: it would keep the body from being inlined.
as $function$
    select interval '1 minute'
$function$;

comment on function agent.sweep_delay() is 'How long a blob without uses is kept.';
