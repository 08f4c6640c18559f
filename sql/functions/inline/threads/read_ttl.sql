-- SPDX-License-Identifier: Apache-2.0
-- How long a thread is kept without activity. p_ttl: of a request: minutes, or an object with ttl.
-- Returns: the interval; p_default if the request names none.
-- Locks:   none.
create or replace function agent.read_ttl(p_ttl json, p_default interval) returns interval
language sql immutable parallel safe
-- No SET clause: it would keep the body from being inlined.
as $function$
    select coalesce(
        (case json_typeof(p_ttl)
             when 'object' then p_ttl ->> 'ttl'
             when 'number' then p_ttl #>> '{}'
         end)::double precision * interval '1 minute', p_default)
$function$;

comment on function agent.read_ttl(json, interval) is 'How long a thread is kept without activity.';
