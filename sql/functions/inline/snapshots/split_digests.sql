-- SPDX-License-Identifier: Apache-2.0
-- The digests of a row of agent.checkpoint_items.
-- Returns: a row for each.
-- Locks:   none.
create or replace function agent.split_digests(p_content text) returns table (digest uuid)
language sql immutable parallel safe
-- No SET clause: it would keep the body from being inlined into FROM.
as $function$
    select unnest(translate('{' || p_content || '}', '"', '')::uuid[])
$function$;

comment on function agent.split_digests(text) is 'The digests of a row of agent.checkpoint_items.';
