-- SPDX-License-Identifier: Apache-2.0
-- The channels of a checkpoint, with what a run reported of the state.
-- p_key: CHECKPOINT or CHECKPOINT+MARK, the beginning of a cursor of agent.read_values.
-- Returns: the channels; null when the thread, the checkpoint or the report does not exist.
-- Locks:   none.
create or replace function agent.find_shown_channels(
    p_deployment_id uuid,
    p_thread_id uuid,
    p_checkpoint_ns text,
    p_key text
) returns agent.channel_value[]
language plpgsql stable security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set enable_hashjoin = off set enable_mergejoin = off set plan_cache_mode = force_generic_plan
as $function$
declare
    v_checkpoint_id constant uuid := split_part(p_key, '+', 1);
    v_mark          constant text := nullif(split_part(p_key, '+', 2), '');
begin
    return (
        select case
                   when v_mark is null then c.channels
                   else ((agent.apply_report(c, true, v_mark)).shown).channels
               end
          from agent.threads t
          join agent.checkpoints c
            on c.deployment_id = t.deployment_id
           and c.thread_id = t.thread_id
           and c.checkpoint_ns = p_checkpoint_ns
           and c.checkpoint_id = v_checkpoint_id
         where t.deployment_id = p_deployment_id
           and t.thread_id = p_thread_id);
end
$function$;

comment on function agent.find_shown_channels(uuid, uuid, text, text) is 'The channels of a checkpoint.';
