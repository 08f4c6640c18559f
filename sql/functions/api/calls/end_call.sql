-- SPDX-License-Identifier: Apache-2.0
-- Ends a call whose time is over, unless it has ended. Its worker is fenced from then on: unsaved output is lost. A
-- call that was saved has succeeded. Several requests may wait for a description: it continues until its own time is
-- over, even if one of them stops waiting.
-- Returns: as agent.join_call, never waiting: call_timeout when a runner had the call, no_runner when none did.
-- Locks:   the thread, then the queue row, then the call's record.
create or replace function agent.end_call(
    p_deployment_id uuid,
    p_thread_id uuid,
    p_call_id uuid,
    out code text,
    out body text
)
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set plan_cache_mode = force_generic_plan
as $function$
declare
    v_row     agent.run_queue;
    v_seconds double precision;
    v_left    interval;
begin
    perform from agent.threads t
      where t.deployment_id = p_deployment_id
        and t.thread_id = p_thread_id
        for no key update;
    select q.* into v_row
      from agent.run_queue q
     where q.run_id = p_call_id
       and q.deployment_id is not distinct from p_deployment_id
       and q.thread_id is not distinct from p_thread_id
       and q.op is not null
       for update;
    if found then
        select extract(epoch from c.deadline_at - c.created_at),
               c.deadline_at - agent.now()
          into v_seconds, v_left
          from agent.calls c
         where c.call_id = p_call_id
           and c.deployment_id is not distinct from p_deployment_id;
        -- The clocks of the server and of the database differ.
        if v_row.op = 'describe' and v_left > interval '1 second' then
            code := 'call_timeout';
            body := 'The graph did not answer in the time of this request.';
            return;
        end if;
        perform agent.finalize_runs(null, array[agent.make_end(v_row, 'timeout', case
            when v_row.state = 'leased' then json_build_object(
                'error', 'call_timeout',
                'message', format('The graph did not answer within %s s; nothing was changed.', v_seconds))
            else json_build_object(
                'error', 'no_runner',
                'message', format('No runner was free to answer within %s s; nothing was changed.', v_seconds))
            end)]);
    end if;
    select j.code, j.body into code, body
      from agent.join_call(p_deployment_id, p_thread_id, p_call_id) j;
end
$function$;

comment on function agent.end_call(uuid, uuid, uuid) is 'Ends a call whose time is over.';
