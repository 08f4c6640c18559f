-- SPDX-License-Identifier: Apache-2.0
-- The length of a value's text, or of its storage if that is not compressed: only a compressed value is fetched.
-- Returns: bytes, 0 for null.
-- Locks:   none.
create or replace function agent.value_bytes(p_value anyelement) returns bigint
language sql stable parallel safe
-- No SET clause: it would keep the body from being inlined.
as $function$
    select coalesce(
        case
            when pg_column_compression(p_value) is null then pg_column_size(p_value)
            else octet_length(p_value::text)
        end, 0)::bigint
$function$;

comment on function agent.value_bytes(anyelement) is 'The length of a value''s text, or of its storage.';
