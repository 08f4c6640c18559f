-- SPDX-License-Identifier: Apache-2.0
-- A checkpoint with the pending writes of its tasks: of a step with parallel nodes some have ended.
-- p_report: the report of a run: `next`, an array, and `values`, an object: differences from the checkpoint, in the
-- notation of the runner protocol.
-- Returns: the row, with another `next`, short values and lists of agent.extend_list for what has changed.
-- Locks:   none.
create or replace function agent.apply_pending(p_row agent.checkpoints, p_report json) returns agent.checkpoints
language plpgsql stable security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $function$
declare
    v_position jsonb;
    v_member   record;
    v_before   agent.channel_value;
    v_content  text;
    v_channels agent.channel_value[] := '{}';
begin
    v_position := agent.map_channels(p_row.channels);
    for v_member in
        select o.name, o.value, coalesce(n.word, '') as notation
          from (
                select distinct on (e.name) e.name, e.value, e.pos
                  from json_each(p_report -> 'values') with ordinality as e (name, value, pos)
                 order by e.name, e.pos desc
               ) o
          left join json_object_keys(case when agent.is_notation(o.value) then o.value end) n (word) on true
         order by o.pos
    loop
        v_before := p_row.channels[(v_position ->> v_member.name)::integer];
        if v_member.notation = '$list' then
            v_before := agent.extend_list(
                p_row.deployment_id, p_row.thread_id, v_member.name, v_before, v_member.value -> '$list');
        elsif v_member.notation <> '$same' then
            v_content := case when v_member.notation = '$value' then v_member.value -> '$value' else v_member.value end;
            v_before := (v_member.name, null, octet_length(v_content), '{}', '{}', null, v_content);
        end if;
        if v_before.name is not null then
            v_channels := v_channels || v_before;
        end if;
    end loop;
    p_row.channels := v_channels;
    p_row.next := p_report -> 'next';
    return p_row;
end
$function$;

comment on function agent.apply_pending(agent.checkpoints, json) is
    'A checkpoint with the pending writes of its tasks.';
