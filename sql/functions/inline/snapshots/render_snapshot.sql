-- SPDX-License-Identifier: Apache-2.0
-- A snapshot without its values, as the runner protocol shows it.
-- Returns: the object as text, one line.
-- Locks:   none.
create or replace function agent.render_snapshot(p_row agent.checkpoint_snapshots) returns text
language sql stable parallel safe
-- No SET clause: it would keep the body from being inlined.
as $function$
    select translate(json_build_object(
               'ns', p_row.checkpoint_ns,
               'checkpoint_id', p_row.checkpoint_id,
               'parent', p_row.parent_checkpoint_id,
               'run_id', p_row.run_id,
               'checkpoint', p_row.checkpoint,
               'metadata', p_row.metadata)::text, E'\n\r', '  ')
$function$;

comment on function agent.render_snapshot(agent.checkpoint_snapshots) is 'A snapshot without its values.';
