-- SPDX-License-Identifier: Apache-2.0
-- Why a request was refused with limit_exceeded: the body from which the server composes its error.
-- Returns: name and value of the limit.
-- Locks:   none.
create or replace function agent.render_limit(p_name text, p_value bigint) returns text
language sql stable parallel safe
-- No SET clause: it would keep the body from being inlined.
as $function$
    select p_name || ' ' || p_value
$function$;

comment on function agent.render_limit(text, bigint) is 'The body of limit_exceeded.';
