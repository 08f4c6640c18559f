-- SPDX-License-Identifier: Apache-2.0
-- The most values that one reference of the runner protocol names, that one put or put_writes names, and that all
-- writes to a snapshot name. They are read and copied together.
-- Returns: a number of digests.
-- Locks:   none.
create or replace function agent.most_digests() returns integer
language sql immutable parallel safe
-- No SET clause: it would keep the body from being inlined.
as $function$
    select 65536
$function$;

comment on function agent.most_digests() is 'The most values that a record of a graph''s library names.';
