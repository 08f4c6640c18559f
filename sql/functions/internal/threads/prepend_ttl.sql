-- SPDX-License-Identifier: Apache-2.0
-- The record of a thread with the member ttl. p_thread: one that has a ttl; p_body: its record, whose values may be
-- a mark (agent.append_values). expires_at of a busy thread is as if its last run had just ended.
-- Returns: the text of the record.
-- Locks:   none.
create or replace function agent.prepend_ttl(p_thread agent.threads, p_body text) returns text
language plpgsql stable security invoker
set search_path = '' set jit = off set enable_seqscan = off set plan_cache_mode = force_generic_plan
as $function$
declare
    v_expires_at timestamptz := agent.now() + p_thread.ttl;
begin
    if p_thread.status <> 'busy' then
        select e.expires_at into v_expires_at
          from agent.thread_expiries e
         where e.deployment_id = p_thread.deployment_id
           and e.thread_id = p_thread.thread_id;
    end if;
    return '{"ttl" : ' || json_build_object(
        'strategy', 'delete',
        'ttl_minutes', trim_scale(extract(epoch from p_thread.ttl) / 60),
        'expires_at', agent.render_time(v_expires_at)) || ', ' || substr(p_body, 2);
end
$function$;

comment on function agent.prepend_ttl(agent.threads, text) is 'The record of a thread with the member ttl.';
