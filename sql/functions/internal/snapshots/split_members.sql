-- SPDX-License-Identifier: Apache-2.0
-- Prepares an object for agent.has_members, which compares it with many others.
-- Returns: scalars: its members that are scalars; others: its objects and arrays.
-- Locks:   none.
create or replace function agent.split_members(p_members jsonb, out scalars jsonb, out others jsonb)
language sql immutable security invoker
set search_path = ''
as $function$
    select coalesce(jsonb_object_agg(m.key, m.value) filter (where not m.is_other), '{}'),
           coalesce(jsonb_object_agg(m.key, m.value) filter (where m.is_other), '{}')
      from (
            select e.key, e.value, jsonb_typeof(e.value) in ('object', 'array') as is_other
              from jsonb_each(p_members) e
           ) m
$function$;

comment on function agent.split_members(jsonb) is 'Prepares an object for agent.has_members.';
