-- SPDX-License-Identifier: Apache-2.0
-- A timestamp as the API shows it: always six digits, always +00:00.
-- Returns: text like 2024-08-30T23:07:38.242730+00:00, null for null.
-- Locks:   none.
create or replace function agent.render_time(p_time timestamptz) returns text
language sql stable parallel safe
-- No SET clause: it would keep the body from being inlined.
as $function$
    select pg_catalog.to_char(p_time at time zone 'UTC',
                              'YYYY-MM-DD"T"HH24:MI:SS.US"+00:00"')
$function$;

comment on function agent.render_time(timestamptz) is 'A timestamp as the API shows it.';
