-- SPDX-License-Identifier: Apache-2.0
-- The clock of the schema: the database's, or the time that a test has set in agent.now.
-- Returns: the current time, not the transaction's: later than everything the transaction has waited for.
-- Locks:   none.
create or replace function agent.now() returns timestamptz
language sql volatile parallel safe
-- No SET clause: it would keep the body from being inlined.
as $function$
    select coalesce(
        nullif(pg_catalog.current_setting('agent.now', true), '')::timestamptz,
        pg_catalog.clock_timestamp())
$function$;

comment on function agent.now() is
    'Present time. A test moves it with set agent.now = ''2030-01-01T00:00:00Z''.';
