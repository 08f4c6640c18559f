-- SPDX-License-Identifier: Apache-2.0
-- Whether a page of a list takes no further record: it has p_limit records (null = no limit), or more than 16 MB of
-- them (p_bytes). It has at least one record, however long.
-- Returns: true, or false or null.
-- Locks:   none.
create or replace function agent.is_full_page(p_count integer, p_limit integer, p_bytes bigint) returns boolean
language sql immutable parallel safe
-- No SET clause: it would keep the body from being inlined.
as $function$
    select p_count = p_limit or p_count > 0 and p_bytes > 16777216
$function$;

comment on function agent.is_full_page(integer, integer, bigint) is 'Whether a page of a list is full.';
