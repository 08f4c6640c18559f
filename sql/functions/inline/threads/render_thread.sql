-- SPDX-License-Identifier: Apache-2.0
-- The thread record of the API. The only definition of this record.
-- p_values: as in agent.append_values.
-- Returns: the text of the record.
-- Locks:   none.
create or replace function agent.render_thread(
    p_thread agent.threads,
    p_values text,
    p_interrupts json
) returns text
language sql stable parallel safe
-- No SET clause: it would keep the body from being inlined.
as $function$
    select agent.append_values(json_build_object(
        'thread_id', p_thread.thread_id,
        'created_at', agent.render_time(p_thread.created_at),
        'updated_at', agent.render_time(p_thread.updated_at),
        'metadata', p_thread.metadata,
        'status', p_thread.status,
        'config', p_thread.config,
        'state_updated_at', agent.render_time(p_thread.state_updated_at),
        'interrupts', p_interrupts), p_values)
$function$;

comment on function agent.render_thread(agent.threads, text, json) is
    'The thread record of the API.';
