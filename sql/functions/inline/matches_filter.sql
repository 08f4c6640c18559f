-- SPDX-License-Identifier: Apache-2.0
-- Whether the value of a store item has all members of a filter: each is a value that the member equals, or an object
-- of operators, all of which hold. $gt, $gte, $lt and $lte compare two numbers, or two strings byte by byte, and do not
-- hold for anything else; $ne holds for a member that is absent.
-- Returns: true or false.
-- Locks:   none.
create or replace function agent.matches_filter(p_value jsonb, p_filter jsonb) returns boolean
language sql immutable parallel safe
-- No SET clause: it would keep the body from being inlined.
as $function$
    select not exists (
        select
          from jsonb_each(p_filter) f
         cross join lateral (select p_value -> f.key as item) v
         cross join lateral jsonb_each(
                case when agent.has_operators(f.value) then f.value else jsonb_build_object('$eq', f.value) end) o
         cross join lateral (
                select case
                           when jsonb_typeof(v.item) <> jsonb_typeof(o.value) then null
                           when jsonb_typeof(o.value) = 'number' then sign(v.item::numeric - o.value::numeric)
                           when jsonb_typeof(o.value) = 'string' then
                               case
                                   when v.item #>> '{}' < o.value #>> '{}' collate "C" then -1
                                   when v.item #>> '{}' > o.value #>> '{}' collate "C" then 1
                                   else 0
                               end
                       end as sign
               ) c
         where (case o.key
                    when '$eq' then v.item = o.value
                    when '$ne' then v.item is distinct from o.value
                    when '$gt' then c.sign > 0
                    when '$gte' then c.sign >= 0
                    when '$lt' then c.sign < 0
                    when '$lte' then c.sign <= 0
                end) is not true)
$function$;

comment on function agent.matches_filter(jsonb, jsonb) is
    'Whether the value of a store item has the members of a filter.';
