-- SPDX-License-Identifier: Apache-2.0
-- Adds deleted rows of a table to those of the deletion of an account.
-- Returns: the numbers by table.
-- Locks:   none.
create or replace function agent.add_deleted_rows(p_rows jsonb, p_name text, p_count bigint) returns jsonb
language sql stable parallel safe
-- No SET clause: it would keep the body from being inlined.
as $function$
    select p_rows || pg_catalog.jsonb_build_object(p_name, coalesce((p_rows ->> p_name)::bigint, 0) + p_count)
$function$;

comment on function agent.add_deleted_rows(jsonb, text, bigint) is 'Adds deleted rows of a table.';
