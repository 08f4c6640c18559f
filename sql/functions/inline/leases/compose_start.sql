-- SPDX-License-Identifier: Apache-2.0
-- The protocol's start message for an attempt of a run; agent.choose_start chooses its checkpoint. Each
-- table is read by key under a limit, so that no statistics can turn the lookups for many runs into a scan.
-- A retry gets the input again if the run's last checkpoint precedes it, and the checkpoints of subgraphs if no step
-- follows that one. `answered` says that an answer may have been used, of the command or one that an earlier run has
-- left. Its resume is no longer strict then, nor once the run has written: the library checks before it writes, and
-- the answers that the run gave no longer wait. Checks that few runs need are functions of their own, called for these
-- alone: a subquery here would be prepared whenever a message is composed.
-- Returns: one row: the message as one line, without line breaks, and the length of the state. Its checkpoint is
--          {"deleted": true} when the one that the request names, or one of a subgraph, was deleted since: no runner
--          may get this message.
-- Locks:   none.
create or replace function agent.compose_start(
    p_deployment_id uuid,
    p_run_id uuid,
    p_thread_id uuid,
    p_graph_id text,
    p_epoch integer,
    p_attempt smallint
) returns table (start text, state_bytes bigint)
language sql stable parallel safe
-- No SET clause: it would keep the body from being inlined into FROM.
as $function$
    select translate(json_build_object(
               'type', 'start',
               'run_id', p_run_id,
               'epoch', p_epoch,
               'attempt', p_attempt,
               'thread_id', p_thread_id,
               'graph_id', p_graph_id,
               'assistant_id', r.assistant_id,
               'input', case when not c.is_retry or k.precedes_input then r.input end,
               'command', case when not c.is_retry then r.command end,
               'config', r.config,
               'context', coalesce(r.context, '{}'),
               'stream_modes', r.stream_mode,
               'stream_subgraphs', r.stream_subgraphs,
               'durability', r.durability,
               'strict_resume', r.strict_resume
                    and not a.answered
                    and not agent.has_written(p_deployment_id, p_thread_id, p_run_id, c.checkpoint_id),
               'answered', a.answered,
               'interrupt_before', r.interrupt_before,
               'interrupt_after', r.interrupt_after,
               'checkpoint', case
                   when m.checkpoint_map is not null
                        and agent.misses_checkpoint(p_deployment_id, p_thread_id, m.checkpoint_map)
                   then json_build_object('deleted', true)
                   else k.checkpoint
               end,
               'checkpoint_map', m.checkpoint_map)::text, E'\n\r', '  '),
           k.state_bytes
      from (
            select x.*
              from agent.runs x
             where x.run_id = p_run_id
               and x.deployment_id is not distinct from p_deployment_id
             limit 1
           ) r
     cross join lateral agent.choose_start(
            p_deployment_id, p_run_id, p_thread_id, r.start_checkpoint_id) c
     cross join lateral agent.compose_checkpoint(p_deployment_id, p_thread_id, c.checkpoint_id) k
     cross join lateral (
            select case
                       when p_epoch > 1
                       then agent.has_answered(
                                p_deployment_id, p_thread_id, p_run_id, r.durability is not distinct from 'exit')
                       else false
                   end as answered
           ) a
     cross join lateral (
            select case
                       when not c.is_retry or k.source in ('input', 'fork') then r.start_map
                   end as checkpoint_map
           ) m
$function$;

comment on function agent.compose_start(uuid, uuid, uuid, text, integer, smallint) is
    'The start message for an attempt of a run.';
