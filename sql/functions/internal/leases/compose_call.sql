-- SPDX-License-Identifier: Apache-2.0
-- The protocol's call message for an attempt of a call, like agent.compose_start: its checkpoint is the one that
-- the request names, else the thread's head, and a retry starts from the same one, since a call that saved a
-- checkpoint is not retried (agent.release_leased_runs). A call that changes nothing has none.
-- Returns: one row: the message as one line, without line breaks, and the length of the state. Its checkpoint is
--          {"deleted": true} when the one that the request names was deleted since: no runner may get this message.
--          No row when the thread was deleted.
-- Locks:   none.
create or replace function agent.compose_call(
    p_deployment_id uuid,
    p_call_id uuid,
    p_thread_id uuid,
    p_epoch integer,
    p_attempt smallint
) returns table (start text, state_bytes bigint)
language plpgsql stable security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set enable_hashjoin = off set enable_mergejoin = off set plan_cache_mode = force_generic_plan
as $function$
begin
    return query
        select translate(json_build_object(
                   'type', 'call',
                   'run_id', p_call_id,
                   'epoch', p_epoch,
                   'attempt', p_attempt,
                   'op', c.op,
                   'thread_id', nullif(p_thread_id, p_call_id),
                   'graph_id', c.graph_id,
                   'arguments', c.arguments,
                   'config', c.config,
                   'context', c.context,
                   'ns', c.checkpoint_ns,
                   'checkpoint', k.checkpoint)::text, E'\n\r', '  '),
               k.state_bytes
          from (
                select x.*
                  from agent.calls x
                 where x.call_id = p_call_id
                   and x.deployment_id is not distinct from p_deployment_id
                 limit 1
               ) c
          left join lateral (
                select x.thread_id, x.head_checkpoint_id
                  from agent.threads x
                 where x.deployment_id = p_deployment_id
                   and x.thread_id = p_thread_id
                 limit 1
               ) t on true
         cross join lateral agent.compose_checkpoint(
                p_deployment_id, p_thread_id,
                case when c.op = 'update' then coalesce(c.checkpoint_id, t.head_checkpoint_id) end, c.checkpoint_ns) k
         where t.thread_id is not null
            or p_thread_id = p_call_id;
end
$function$;

comment on function agent.compose_call(uuid, uuid, uuid, integer, smallint) is
    'The call message for an attempt of a call.';
