-- SPDX-License-Identifier: Apache-2.0
-- The members of a config's configurable that say where a run starts beside checkpoint_id, as the request has them.
-- Returns: an object: checkpoint_ns of a subgraph, and checkpoint_map, if there is one.
-- Locks:   none.
create or replace function agent.render_place(p_place agent.start_place) returns jsonb
language sql stable parallel safe
-- No SET clause: it would keep the body from being inlined.
as $function$
    select jsonb_strip_nulls(jsonb_build_object(
        'checkpoint_ns', nullif((p_place).checkpoint_ns, ''), 'checkpoint_map', (p_place).given_map))
$function$;

comment on function agent.render_place(agent.start_place) is 'The members of a config that say where a run starts.';
