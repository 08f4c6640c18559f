-- SPDX-License-Identifier: Apache-2.0
-- The run record of the API. The only definition of this record.
-- Returns: the record; input and command are the client's exact text.
-- Locks:   none.
create or replace function agent.render_run(p_run agent.runs) returns json
language sql stable parallel safe
-- No SET clause: it would keep the body from being inlined.
as $function$
    select json_build_object(
        'run_id', p_run.run_id,
        'thread_id', p_run.thread_id,
        'assistant_id', p_run.assistant_id,
        'created_at', agent.render_time(p_run.created_at),
        'updated_at', agent.render_time(p_run.updated_at),
        'metadata', p_run.metadata,
        'status', p_run.status,
        'kwargs', json_build_object(
            'input', p_run.input,
            'config', p_run.config,
            'webhook', p_run.webhook,
            'temporary', p_run.temporary,
            'stream_mode', p_run.stream_mode,
            'feedback_keys', p_run.feedback_keys,
            'interrupt_after', p_run.interrupt_after,
            'interrupt_before', p_run.interrupt_before,
            'command', p_run.command,
            'context', p_run.context,
            'subgraphs', p_run.stream_subgraphs,
            'resumable', p_run.stream_resumable,
            'durability', p_run.durability),
        'multitask_strategy', p_run.multitask_strategy,
        'error', p_run.error,
        'cancel_reason', p_run.cancel_reason)
$function$;

comment on function agent.render_run(agent.runs) is 'The run record of the API.';
