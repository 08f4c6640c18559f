-- SPDX-License-Identifier: Apache-2.0
-- Estimates the length of a start or call message without composing it, from that of the request. A request that
-- was not measured counts as 8 MiB, the longest line of the protocol. p_op: the operation of a call, null for a run.
-- Returns: one row: bytes of the message, approximate; bytes of the state, measured when it was saved.
-- Locks:   none.
create or replace function agent.start_bytes(
    p_deployment_id uuid,
    p_run_id uuid,
    p_thread_id uuid,
    p_request_bytes integer,
    p_op text
) returns table (bytes bigint, state_bytes bigint)
language sql stable parallel safe
-- No SET clause: it would keep the body from being inlined into FROM.
as $function$
    select 1280 + coalesce(p_request_bytes, 8388608)::bigint,
           coalesce(k.state_bytes, 0)::bigint
      from (
            select case
                       when p_op is null then (
                           select x.start_checkpoint_id
                             from agent.runs x
                            where x.run_id = p_run_id
                              and x.deployment_id is not distinct from p_deployment_id
                            limit 1)
                       else (
                           select x.checkpoint_id
                             from agent.calls x
                            where x.call_id = p_run_id
                              and x.deployment_id is not distinct from p_deployment_id
                            limit 1)
                   end as start_checkpoint_id,
                   case when p_op = 'update' then (
                       select x.checkpoint_ns
                         from agent.calls x
                        where x.call_id = p_run_id
                          and x.deployment_id is not distinct from p_deployment_id
                        limit 1) else '' end as checkpoint_ns
           ) r
      -- Not of a call that changes nothing: it does not read the state.
      left join lateral agent.choose_start(
            p_deployment_id, p_run_id, p_thread_id, r.start_checkpoint_id) c on coalesce(p_op, 'update') = 'update'
      left join lateral (
            select x.state_bytes
              from agent.checkpoints x
             where x.deployment_id = p_deployment_id
               and x.thread_id = p_thread_id
               and x.checkpoint_ns = r.checkpoint_ns
               and x.checkpoint_id = c.checkpoint_id
             limit 1
           ) k on true
$function$;

comment on function agent.start_bytes(uuid, uuid, uuid, integer, text) is
    'Approximate length of the message that gives a run or call to a runner.';
