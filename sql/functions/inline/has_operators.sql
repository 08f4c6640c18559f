-- SPDX-License-Identifier: Apache-2.0
-- Whether a member of a store filter is an object of operators, such as {"$gt": 1}: one of its names begins with $.
-- Returns: true or false.
-- Locks:   none.
create or replace function agent.has_operators(p_value jsonb) returns boolean
language sql immutable parallel safe
-- No SET clause: it would keep the body from being inlined.
as $function$
    select jsonb_typeof(p_value) = 'object' and p_value::text like '%"$%' and exists (
        select
          from jsonb_object_keys(case when jsonb_typeof(p_value) = 'object' then p_value else '{}' end) k
         where starts_with(k, '$'))
$function$;

comment on function agent.has_operators(jsonb) is 'Whether a member of a store filter is an object of operators.';
