-- SPDX-License-Identifier: Apache-2.0
-- The value of a write as a reference of the runner protocol.
-- Returns: a digest, null, or {"list": {"keep": 0, "items": [...]}}.
-- Locks:   none.
create or replace function agent.render_reference(p_digests uuid[], p_is_list boolean) returns json
language sql stable parallel safe
-- No SET clause: it would keep the body from being inlined.
as $function$
    select case
               when p_is_list then json_build_object('list', json_build_object('keep', 0, 'items', p_digests))
               else to_json(p_digests[1])
           end
$function$;

comment on function agent.render_reference(uuid[], boolean) is 'The value of a write as a reference.';
