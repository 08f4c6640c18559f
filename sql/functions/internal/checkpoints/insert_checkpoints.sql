-- SPDX-License-Identifier: Apache-2.0
-- Inserts checkpoints and the elements that were added with them, and moves the heads of their threads to those of
-- the root graph.
-- Returns: nothing. Raises an error of class 22 when one has the id of a checkpoint that is being deleted.
-- Locks:   the caller holds the threads.
create or replace function agent.insert_checkpoints(
    p_rows agent.checkpoints[],
    p_items agent.stored_items[]
) returns void
language plpgsql volatile security invoker
-- No SET clause: agent.save_batch has them.
as $function$
declare
    v_now   timestamptz := agent.now();
    v_count integer;
begin
    perform agent.insert_items(p_items);
    insert into agent.checkpoints
    select r.*
      from unnest(p_rows) r
        on conflict (deployment_id, thread_id, checkpoint_ns, checkpoint_id) do nothing;
    get diagnostics v_count = row_count;
    if v_count < cardinality(p_rows) then
        raise exception using errcode = 'invalid_parameter_value',
            message = 'a checkpoint has the id of one that is being deleted';
    end if;

    update agent.threads t
       set head_checkpoint_id = h.checkpoint_id,
           head_run_id = h.run_id,
           head_has_next = json_array_length(h.next) > 0,
           state_updated_at = v_now,
           updated_at = v_now
      from (
            -- The ids of one run's checkpoints are ordered by time.
            select distinct on (s.deployment_id, s.thread_id)
                   s.checkpoint_id, s.run_id, s.next, x.ctid as row_id
              from unnest(p_rows) s
             cross join lateral (
                    select y.ctid
                      from agent.threads y
                     where y.deployment_id = s.deployment_id
                       and y.thread_id = s.thread_id
                     limit 1
                   ) x
             where s.checkpoint_ns = ''
             order by s.deployment_id, s.thread_id, s.checkpoint_id desc
           ) h
     where t.ctid = h.row_id;
end
$function$;

comment on function agent.insert_checkpoints(agent.checkpoints[], agent.stored_items[]) is
    'Inserts checkpoints, and moves the heads of their threads.';
