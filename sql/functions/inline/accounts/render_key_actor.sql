-- SPDX-License-Identifier: Apache-2.0
-- An API key as an actor of agent.audit_log.
-- Returns: text like `key 0aB...`.
-- Locks:   none.
create or replace function agent.render_key_actor(p_key_id text) returns text
language sql stable parallel safe
-- No SET clause: it would keep the body from being inlined.
as $function$
    select 'key ' || p_key_id
$function$;

comment on function agent.render_key_actor(text) is 'An API key as an actor of agent.audit_log.';
