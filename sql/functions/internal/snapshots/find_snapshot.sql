-- SPDX-License-Identifier: Apache-2.0
-- The snapshot of the root graph with which a thread continues: that of its head, or the newest one of a time when the
-- library has put none for it.
-- Returns: its id; null for none.
-- Locks:   none.
create or replace function agent.find_snapshot(
    p_deployment_id uuid,
    p_thread_id uuid,
    p_head_id uuid,
    p_until timestamptz
) returns uuid
language plpgsql stable parallel safe security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_hashjoin = off
set plan_cache_mode = force_generic_plan
as $function$
begin
    return coalesce((
        select x.checkpoint_id
          from agent.checkpoint_snapshots x
         where x.deployment_id = p_deployment_id
           and x.thread_id = p_thread_id
           and x.checkpoint_ns = ''
           and x.checkpoint_id = p_head_id), (
        select x.checkpoint_id
          from agent.checkpoint_snapshots x
         where x.deployment_id = p_deployment_id
           and x.thread_id = p_thread_id
           and x.checkpoint_ns = ''
           and x.created_at <= p_until
           and (x.run_id in (
                select s.run_id
                  from agent.find_swept_runs(p_deployment_id, p_thread_id) s)) is not true
         order by x.deployment_id desc, x.thread_id desc, x.checkpoint_ns desc, x.checkpoint_id desc
         limit 1));
end
$function$;

comment on function agent.find_snapshot(uuid, uuid, uuid, timestamptz) is
    'The snapshot with which a thread continues.';
