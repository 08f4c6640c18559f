-- SPDX-License-Identifier: Apache-2.0
-- The metadata that a checkpoint shows: its own, with those of the run that saved it.
-- Returns: the object; null when p_checkpoint_id is null.
-- Locks:   none.
create or replace function agent.render_checkpoint_metadata(
    p_deployment_id uuid,
    p_thread_id uuid,
    p_checkpoint_id uuid,
    p_run_id uuid,
    p_metadata json
) returns table (metadata json)
language sql stable parallel safe
-- No SET clause: it would keep the body from being inlined.
as $function$
    select case when p_checkpoint_id is not null then
               agent.concat_objects(p_metadata, (
                   coalesce((
                       select r.metadata
                         from agent.find_run_metadata(p_deployment_id, p_thread_id, p_run_id) r), '{}')
                   || jsonb_build_object('thread_id', p_thread_id))::json)
           end
$function$;

comment on function agent.render_checkpoint_metadata(uuid, uuid, uuid, uuid, json) is
    'The metadata that a checkpoint shows.';
