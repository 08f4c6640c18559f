-- SPDX-License-Identifier: Apache-2.0
-- The delay after a failed attempt to deliver a webhook: 1, 5, 25 s, 2, 10, 52 min, 4.3 h, then 6 h three
-- times; 11 attempts over 23 hours.
-- Returns: the delay after the attempt of that number, counted from 1; null after the last one.
-- Locks:   none.
create or replace function agent.webhook_delay(p_attempt integer) returns interval
language sql immutable parallel safe
-- No SET clause: it would keep the body from being inlined.
as $function$
    select case when p_attempt < 11 then
               least(power(5, least(p_attempt, 10) - 1), 21600) * interval '1 second'
           end
$function$;

comment on function agent.webhook_delay(integer) is
    'Delay after a failed attempt to deliver a webhook; null after the last one.';
