-- SPDX-License-Identifier: Apache-2.0
-- The result of a call of a thread, called once per wake-up: reads only.
-- Returns: waiting while it is unfinished; else its result: ok with the response, of a call that created the
--          thread its record, or the word of an error and its text;
--          thread_not_found when the call is gone, since only the deletion of its thread removes one that is waited
--          for.
-- Locks:   none.
create or replace function agent.join_call(
    p_deployment_id uuid,
    p_thread_id uuid,
    p_call_id uuid,
    out code text,
    out body text
)
language plpgsql stable security invoker
set search_path = '' set jit = off set enable_seqscan = off set plan_cache_mode = force_generic_plan
as $function$
declare
    v_creates boolean;
begin
    select coalesce(c.code, case when q.run_id is not null then 'waiting' end), c.body,
           c.op = 'update' and c.thread_status is null
      into code, body, v_creates
      from (
            select x.*
              from agent.calls x
             where x.call_id = p_call_id
               and x.deployment_id is not distinct from p_deployment_id
               and x.thread_id is not distinct from p_thread_id
             limit 1
           ) c
      left join lateral (
            select x.run_id
              from agent.run_queue x
             where x.run_id = c.call_id
               and x.deployment_id is not distinct from c.deployment_id
             limit 1
           ) q on true;
    if v_creates and code = 'ok' then
        select g.code, g.body into code, body
          from agent.get_thread(p_deployment_id, p_thread_id) g;
    end if;
    code := coalesce(code, 'thread_not_found');
end
$function$;

comment on function agent.join_call(uuid, uuid, uuid) is 'The result of a call of a thread.';
