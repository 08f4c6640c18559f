-- SPDX-License-Identifier: Apache-2.0
-- A checkpoint with the pending writes of its tasks, as the last run that stopped there has reported it: of a step with
-- parallel nodes some have ended. Its values are differences from the checkpoint, in the notation of the runner
-- protocol. The update of a command that is newer than the report is shown instead.
-- p_row: null, or a row of nulls, for none.
-- Returns: the row; one with pending writes has another `next`, short values for what has changed, and no state_bytes:
--          it is sent whole.
-- Locks:   none.
create or replace function agent.apply_pending(p_row agent.checkpoints) returns agent.checkpoints
language plpgsql stable security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $function$
declare
    v_report   json;
    v_position jsonb;
    v_member   record;
    v_before   agent.channel_value;
    v_content  text;
    v_channels agent.channel_value[] := '{}';
begin
    select t.task::json into v_report
      from agent.find_task_report(
               p_row.deployment_id, p_row.thread_id, p_row.checkpoint_ns, p_row.checkpoint_id, agent.pending_id(),
               'infinity') t
      left join agent.find_task_report(
               p_row.deployment_id, p_row.thread_id, p_row.checkpoint_ns, p_row.checkpoint_id, agent.update_id(),
               'infinity') u on true
     where (u.saved_at <= t.saved_at) is not false;
    if (json_typeof(v_report -> 'values') = 'object' and json_typeof(v_report -> 'next') = 'array') is not true then
        return agent.apply_update(p_row);
    end if;
    v_position := agent.map_channels(p_row.channels);
    for v_member in
        select o.name, o.value, coalesce(n.word, '') as notation
          from (
                select distinct on (e.name) e.name, e.value, e.pos
                  from json_each(v_report -> 'values') with ordinality as e (name, value, pos)
                 order by e.name, e.pos desc
               ) o
          left join json_object_keys(case when agent.is_notation(o.value) then o.value end) n (word) on true
         order by o.pos
    loop
        v_before := p_row.channels[(v_position ->> v_member.name)::integer];
        if v_member.notation <> '$same' then
            v_content := case v_member.notation
                when '$list' then agent.concat_list(
                    p_row.deployment_id, p_row.thread_id, v_before, v_member.value -> '$list')
                when '$value' then (v_member.value -> '$value')::text
                else v_member.value::text
            end;
            v_before := (v_member.name, null, octet_length(v_content), '{}', '{}', null, v_content);
        end if;
        if v_before.name is not null then
            v_channels := v_channels || v_before;
        end if;
    end loop;
    p_row.channels := v_channels;
    p_row.next := v_report -> 'next';
    p_row.state_bytes := null;
    return p_row;
end
$function$;

comment on function agent.apply_pending(agent.checkpoints) is 'A checkpoint with the pending writes of its tasks.';
