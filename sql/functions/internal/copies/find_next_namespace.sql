-- SPDX-License-Identifier: Apache-2.0
-- Finds the namespace after p_ns in a thread that is copied: of snapshots, or of checkpoints.
-- Returns: ns, null after the last one; newest_id: the newest one in it, without those that were saved later, which do
--          not belong to the head that is copied, and those of deleted runs.
-- Locks:   none.
create or replace function agent.find_next_namespace(
    p_copy agent.thread_copies,
    p_is_snapshot boolean,
    p_ns text,
    out ns text,
    out newest_id uuid
)
language plpgsql stable security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set enable_hashjoin = off set enable_mergejoin = off set plan_cache_mode = force_generic_plan
as $function$
declare
    v_swept uuid[] := array(
        select s.run_id
          from agent.find_swept_runs(p_copy.deployment_id, p_copy.source_id) s);
begin
    if p_is_snapshot then
        select x.checkpoint_ns into ns
          from agent.checkpoint_snapshots x
         where x.deployment_id = p_copy.deployment_id
           and x.thread_id = p_copy.source_id
           and x.checkpoint_ns > p_ns
         order by x.deployment_id, x.thread_id, x.checkpoint_ns, x.checkpoint_id
         limit 1;
        select x.checkpoint_id into newest_id
          from agent.checkpoint_snapshots x
         where x.deployment_id = p_copy.deployment_id
           and x.thread_id = p_copy.source_id
           and x.checkpoint_ns = ns
           and x.created_at <= p_copy.started_at
           and (x.run_id = any (v_swept)) is not true
         order by x.deployment_id desc, x.thread_id desc, x.checkpoint_ns desc, x.checkpoint_id desc
         limit 1;
    else
        select x.checkpoint_ns into ns
          from agent.checkpoints x
         where x.deployment_id = p_copy.deployment_id
           and x.thread_id = p_copy.source_id
           and x.checkpoint_ns > p_ns
         order by x.deployment_id, x.thread_id, x.checkpoint_ns, x.checkpoint_id
         limit 1;
        select x.checkpoint_id into newest_id
          from agent.checkpoints x
         where x.deployment_id = p_copy.deployment_id
           and x.thread_id = p_copy.source_id
           and x.checkpoint_ns = ns
           and x.created_at <= p_copy.started_at
           and (x.run_id = any (v_swept)) is not true
         order by x.deployment_id desc, x.thread_id desc, x.checkpoint_ns desc, x.checkpoint_id desc
         limit 1;
    end if;
end
$function$;

comment on function agent.find_next_namespace(agent.thread_copies, boolean, text) is
    'Finds the next namespace of a thread that is copied.';
