-- SPDX-License-Identifier: Apache-2.0
-- The member `checkpoint` of a start or call message: the checkpoint from which the run starts, whose values a runner
-- reads with agent.read_state. p_checkpoint_id null: the thread has no state. p_checkpoint_ns: its namespace.
-- Returns: one row: the member, {"deleted": true} when the checkpoint was deleted, null without one; whether its
--          input is still to be applied (next is __start__); its metadata.source; and the length of its state.
-- Locks:   none.
create or replace function agent.compose_checkpoint(
    p_deployment_id uuid,
    p_thread_id uuid,
    p_checkpoint_id uuid,
    p_checkpoint_ns text default ''
) returns table (checkpoint json, precedes_input boolean, source text, state_bytes bigint)
language sql stable parallel safe
-- No SET clause: it would keep the body from being inlined into FROM.
as $function$
    select case
               when k.checkpoint_id is not null then json_build_object(
                   'checkpoint_id', k.checkpoint_id,
                   'run_id', k.run_id,
                   'source', k.metadata ->> 'source',
                   'step', k.metadata -> 'step',
                   'next', k.next,
                   'bytes', k.state_bytes,
                   'format', k.format)
               when p_checkpoint_id is not null then json_build_object('deleted', true)
           end,
           k.next ->> 0 = '__start__',
           k.metadata ->> 'source',
           k.state_bytes
      from (values (true)) as one (is_one)
      left join lateral (
            select x.*
              from agent.find_checkpoint(p_deployment_id, p_thread_id, p_checkpoint_ns, p_checkpoint_id) x
             limit 1
           ) k on true
$function$;

comment on function agent.compose_checkpoint(uuid, uuid, uuid, text) is
    'The checkpoint of a start or call message.';
