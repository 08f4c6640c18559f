-- SPDX-License-Identifier: Apache-2.0
-- The record of a thread with the values of its head checkpoint.
-- p_select: the members to show; null or {} for all. p_max_bytes: as in agent.get_thread.
-- Returns: the text of the record; cursor: as in agent.get_thread; bytes: the length of the record with all members,
--          except values that p_select omits.
-- Locks:   none.
create or replace function agent.compose_thread(
    p_thread agent.threads,
    p_select text[],
    p_max_bytes bigint,
    out body text,
    out cursor text,
    out bytes bigint
)
language plpgsql stable security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_hashjoin = off
set plan_cache_mode = force_generic_plan
as $function$
declare
    v_has_values constant boolean := coalesce(p_select = '{}' or 'values' = any (p_select), true);
    v_head       agent.checkpoints;
    v_report     record;
    v_values     text;
    v_interrupts json;
begin
    select k.* into v_head
      from agent.checkpoints k
     where k.deployment_id = p_thread.deployment_id
       and k.thread_id = p_thread.thread_id
       and k.checkpoint_ns = ''
       and k.checkpoint_id = p_thread.head_checkpoint_id;
    if v_has_values then
        v_report := agent.apply_report(v_head, false);
        v_head := v_report.shown;
        select v.content, v.cursor into v_values, cursor
          from agent.compose_bounded_values(
                   p_thread.deployment_id, p_thread.thread_id, v_head.checkpoint_id, v_head.channels,
                   v_head.state_bytes, p_max_bytes, v_report.mark) v;
    end if;
    select i.by_task into v_interrupts
      from agent.render_interrupts(agent.render_tasks(
               p_thread.deployment_id, p_thread.thread_id, '', v_head.checkpoint_id, v_head.tasks)) i;
    if p_select <> '{}' then
        -- Without the values, in whose place the text may have U+0001.
        body := agent.render_thread(p_thread, null, v_interrupts);
        bytes := octet_length(body) + coalesce(octet_length(v_values), 0);
        body := agent.pick_members(body::json, array_remove(p_select, 'values'));
        if v_has_values then
            body := agent.append_values(body::json, v_values);
        end if;
    else
        body := agent.render_thread(p_thread, v_values, v_interrupts);
        bytes := octet_length(body);
    end if;
end
$function$;

comment on function agent.compose_thread(agent.threads, text[], bigint) is
    'The record of a thread with the values of its head checkpoint.';
