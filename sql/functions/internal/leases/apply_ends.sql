-- SPDX-License-Identifier: Apache-2.0
-- Applies the ends that a worker reports. A cancel requested earlier decides the status: rollback overrides
-- every reported status, interrupt every status but success. A run is interrupted only by a cancel or by
-- another run: without one, a reported interrupted is stored as success. Where the run stopped decides the
-- status of the thread (agent.promote_next_runs).
-- Returns: whether a next run of a thread became ready.
-- Locks:   the caller holds the threads and the queue rows; takes the records.
create or replace function agent.apply_ends(
    p_worker_id bigint,
    p_runs agent.leased_run[]
) returns boolean
language plpgsql volatile security invoker
-- No SET clause: agent.save_batch has them.
as $function$
declare
    v_finals    agent.run_end[];
    v_discarded agent.run_queue[];
    v_row       agent.run_queue;
    v_promoted  boolean := false;
begin
    select array_agg(agent.make_end(
               q,
               case
                   when q.cancel is null and i.status = 'interrupted' then 'success'
                   when q.cancel = 'interrupt' and i.status <> 'success' then 'interrupted'
                   else i.status
               end,
               case
                   when i.status in ('error', 'timeout') and q.cancel is null then
                       coalesce(i.error, json_build_object(
                           'error', i.status, 'message', 'The run ended without a message.'))
               end,
               i.last_event_seq,
               i.is_failure,
               i.value))
               filter (where q.cancel is distinct from 'rollback'),
           array_agg(q) filter (where q.cancel = 'rollback')
      into v_finals, v_discarded
      from unnest(p_runs) i
     cross join lateral agent.find_lease(p_worker_id, i.deployment_id, i.run_id, i.epoch) q
     where i.status is not null;

    if v_finals is not null then
        v_promoted := agent.finalize_runs(p_worker_id, v_finals);
    end if;
    foreach v_row in array coalesce(v_discarded, '{}')
    loop
        v_promoted := agent.rollback_run(
            p_worker_id, v_row, agent.deletion_bytes() / cardinality(v_discarded)) or v_promoted;
    end loop;
    return v_promoted;
end
$function$;

comment on function agent.apply_ends(bigint, agent.leased_run[]) is
    'Applies the ends that a worker reports.';
