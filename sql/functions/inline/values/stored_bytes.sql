-- SPDX-License-Identifier: Apache-2.0
-- The length of a value as far as its storage tells: a compressed one counts sixteen times. It is not fetched.
-- Returns: bytes, 0 for null.
-- Locks:   none.
create or replace function agent.stored_bytes(p_value anyelement) returns bigint
language sql stable parallel safe
-- No SET clause: it would keep the body from being inlined.
as $function$
    select coalesce(
        pg_column_size(p_value)::bigint * case when pg_column_compression(p_value) is null then 1 else 16 end, 0)
$function$;

comment on function agent.stored_bytes(anyelement) is 'The length of a value as far as its storage tells.';
