-- SPDX-License-Identifier: Apache-2.0
-- Whether labels are those of a pattern of the same number of labels, in which * is any label.
-- Returns: true or false.
-- Locks:   none.
create or replace function agent.matches_labels(p_labels text[], p_pattern text[]) returns boolean
language sql immutable parallel safe
-- No SET clause: it would keep the body from being inlined.
as $function$
    select cardinality(p_labels) = cardinality(p_pattern) and not exists (
        select
          from unnest(p_labels, p_pattern) l (label, pattern)
         where l.pattern not in ('*', l.label))
$function$;

comment on function agent.matches_labels(text[], text[]) is 'Whether labels of a namespace are those of a pattern.';
