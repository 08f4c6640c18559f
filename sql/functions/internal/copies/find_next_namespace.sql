-- SPDX-License-Identifier: Apache-2.0
-- Finds the namespace that is copied after p_ns: of snapshots, or of checkpoints. A copy begins with the namespace of
-- the root graph; those of subgraphs follow, from the last one to the first.
-- Returns: ns, null when there is none; newest_id: the newest one in it, without those that were saved after the begin
--          of the copy, which do not belong to the head that is copied, and those of deleted runs.
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
    -- The smallest id of a namespace; the earlier ones follow.
    c_nil   constant uuid := '00000000-0000-0000-0000-000000000000';
    v_swept uuid[] := array(
        select s.run_id
          from agent.find_swept_runs(p_copy.deployment_id, p_copy.source_id) s);
begin
    select x.checkpoint_ns, x.checkpoint_id into ns, newest_id
      from agent.find_earlier(
             p_copy.deployment_id, p_copy.source_id, p_is_snapshot, p_ns, case when p_ns <> '' then c_nil end) x
     where x.checkpoint_ns > ''
       -- A runner may have sent that id.
       and x.checkpoint_ns <> p_ns
       and x.created_at <= p_copy.started_at
       and (x.run_id = any (v_swept)) is not true
     limit 1;
end
$function$;

comment on function agent.find_next_namespace(agent.thread_copies, boolean, text) is
    'Finds the next namespace of a thread that is copied.';
