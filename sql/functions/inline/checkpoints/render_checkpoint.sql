-- SPDX-License-Identifier: Apache-2.0
-- A reference to a checkpoint as the API shows it.
-- Returns: the object, null when p_checkpoint_id is null.
-- Locks:   none.
create or replace function agent.render_checkpoint(
    p_thread_id uuid,
    p_checkpoint_id uuid,
    p_checkpoint_ns text default '',
    p_checkpoint_map jsonb default null
) returns json
language sql stable parallel safe
-- No SET clause: it would keep the body from being inlined.
as $function$
    select case when p_checkpoint_id is not null then
               json_build_object(
                   'thread_id', p_thread_id,
                   'checkpoint_ns', p_checkpoint_ns,
                   'checkpoint_id', p_checkpoint_id,
                   'checkpoint_map', p_checkpoint_map)
           end
$function$;

comment on function agent.render_checkpoint(uuid, uuid, text, jsonb) is 'A reference to a checkpoint.';
