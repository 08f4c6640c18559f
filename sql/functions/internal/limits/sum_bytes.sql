-- SPDX-License-Identifier: Apache-2.0
-- The sum of what a copy has stored in its tables.
-- Returns: bytes.
-- Locks:   none.
create or replace function agent.sum_bytes(p_bytes bigint[]) returns bigint
language sql immutable parallel safe security invoker
set search_path = ''
as $function$
    select coalesce(sum(b.bytes), 0)::bigint
      from unnest(p_bytes) b (bytes)
$function$;

comment on function agent.sum_bytes(bigint[]) is 'The sum of what a copy has stored.';
