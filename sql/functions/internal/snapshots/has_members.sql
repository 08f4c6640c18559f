-- SPDX-License-Identifier: Apache-2.0
-- Whether an object has equal members, as the savers of the graphs' libraries compare metadata.
-- p_scalars, p_others: the members, from agent.split_members.
-- Returns: true or false.
-- Bound:   the lengths of the object and of the members, once: no array is compared with parts of another one, and the
--          object is uncompressed once for all members.
-- Locks:   none.
create or replace function agent.has_members(p_object jsonb, p_scalars jsonb, p_others jsonb) returns boolean
language plpgsql immutable security invoker
set search_path = ''
as $function$
declare
    -- The same, but uncompressed.
    v_object jsonb := p_object || '{}';
begin
    if not v_object @> p_scalars then
        return false;
    end if;
    return p_others = '{}' or not exists (
        select
          from jsonb_each(p_others) o
         where v_object -> o.key is distinct from o.value);
end
$function$;

comment on function agent.has_members(jsonb, jsonb, jsonb) is 'Whether an object has equal members.';
