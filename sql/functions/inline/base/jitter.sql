-- SPDX-License-Identifier: Apache-2.0
-- Changes a delay at random by up to 20 %, so that attempts that failed together are not repeated together.
-- Returns: the changed delay, null for null.
-- Locks:   none.
create or replace function agent.jitter(p_delay interval) returns interval
language sql volatile parallel safe
-- No SET clause: it would keep the body from being inlined.
as $function$
    select p_delay * (0.8 + 0.4 * random())
$function$;

comment on function agent.jitter(interval) is 'A delay changed at random by up to 20 %.';
