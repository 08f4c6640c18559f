-- SPDX-License-Identifier: Apache-2.0
-- The namespaces of the store that begin with the labels p_prefix are those from p_prefix to this one, which is not
-- one of them: no character comes before U+0001, and no label has 300 times the last character.
-- Returns: labels.
-- Locks:   none.
create or replace function agent.namespace_end(p_prefix text[]) returns text[]
language sql immutable parallel safe
-- No SET clause: it would keep the body from being inlined.
as $function$
    select case
               when cardinality(p_prefix) = 0 then array[repeat(chr(1114111), 300)]
               else p_prefix[:cardinality(p_prefix) - 1] || (p_prefix[cardinality(p_prefix)] || chr(1))
           end
$function$;

comment on function agent.namespace_end(text[]) is 'The end of the namespaces that begin with some labels.';
