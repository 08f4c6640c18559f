-- SPDX-License-Identifier: Apache-2.0
-- The length of data, in bytes, after which a call that reads events returns no further row.
-- Returns: a number of bytes.
-- Locks:   none.
create or replace function agent.page_bytes() returns integer
language sql immutable parallel safe
-- No SET clause: it would keep the body from being inlined.
as $function$
    select 65536
$function$;

comment on function agent.page_bytes() is
    'Bytes of data after which a call that reads events returns no further row.';
