-- SPDX-License-Identifier: Apache-2.0
-- The id of the account `default`, which every database has from its first migration, and which is never closed.
-- Returns: the id.
-- Locks:   none.
create or replace function agent.built_in_account() returns uuid
language sql immutable parallel safe
-- No SET clause: it would keep the body from being inlined.
as $function$
    select '00000000-0000-0000-0000-00000000000a'::uuid
$function$;

comment on function agent.built_in_account() is 'The id of the account default.';
