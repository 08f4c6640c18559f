-- SPDX-License-Identifier: Apache-2.0
-- Whether the active run of a thread may continue what another run saved, which is to be deleted: the state with which
-- it began, while it has saved none of its own; checkpoints of subgraphs from which it starts; the last snapshot of a
-- namespace. A namespace of a task, with a colon, is continued only from the checkpoint of the root graph that has the
-- task, which metadata.parents of its snapshots names.
-- p_thread: its row, with active_run_id.
-- Returns: true or false; true where metadata.parents does not name that checkpoint, and for more than 1,000 snapshots,
--          of which no more are read.
-- Locks:   the caller holds the thread.
create or replace function agent.may_continue_run(p_thread agent.threads, p_run_id uuid) returns boolean
language plpgsql stable security invoker
set search_path = '' set jit = off set enable_seqscan = off set plan_cache_mode = force_generic_plan
as $function$
declare
    c_snapshots constant integer := 1000;
    v_spaces    text[];
    v_start_id uuid := coalesce((
        select r.start_checkpoint_id
          from agent.runs r
         where r.run_id = p_thread.active_run_id
           and r.deployment_id is not distinct from p_thread.deployment_id), (
        select l.checkpoint_id
          from agent.calls l
         where l.call_id = p_thread.active_run_id
           and l.deployment_id is not distinct from p_thread.deployment_id
           and l.checkpoint_ns = ''), p_thread.head_checkpoint_id);
begin
    if p_thread.head_run_id is distinct from p_thread.active_run_id and p_run_id = (
        select c.run_id
          from agent.checkpoints c
         where c.deployment_id = p_thread.deployment_id
           and c.thread_id = p_thread.thread_id
           and c.checkpoint_ns = ''
           and c.checkpoint_id = v_start_id)
    then
        return true;
    end if;
    perform from (
            select m.key as checkpoint_ns, m.value::uuid as checkpoint_id
              from agent.runs r
             cross join lateral jsonb_each_text(r.start_map) m
             where r.run_id = p_thread.active_run_id
               and r.deployment_id is not distinct from p_thread.deployment_id
            union all
            select l.checkpoint_ns, l.checkpoint_id
              from agent.calls l
             where l.call_id = p_thread.active_run_id
               and l.deployment_id is not distinct from p_thread.deployment_id
               and l.checkpoint_ns <> ''
           ) s
      cross join lateral agent.find_checkpoint(
            p_thread.deployment_id, p_thread.thread_id, s.checkpoint_ns, s.checkpoint_id) k
      where k.run_id = p_run_id;
    if found then
        return true;
    end if;
    v_spaces := array(
        select x.checkpoint_ns
          from agent.checkpoint_snapshots x
         where x.run_id = p_run_id
           and uuid_hash_extended(x.thread_id, 0) = uuid_hash_extended(p_thread.thread_id, 0)
           and x.deployment_id is not distinct from p_thread.deployment_id
           and x.thread_id is not distinct from p_thread.thread_id
         limit c_snapshots + 1);
    return cardinality(v_spaces) > c_snapshots or exists (
        select from (
                select distinct u.checkpoint_ns
                  from unnest(v_spaces) u (checkpoint_ns)
               ) n
         cross join lateral (
                select k.run_id, k.metadata -> 'parents' ->> '' as root_id
                  from agent.checkpoint_snapshots k
                 where k.deployment_id = p_thread.deployment_id
                   and k.thread_id = p_thread.thread_id
                   and k.checkpoint_ns = n.checkpoint_ns
                   and (k.run_id in (
                        select s.run_id
                          from agent.find_swept_runs(p_thread.deployment_id, p_thread.thread_id) s)) is not true
                 order by k.deployment_id desc, k.thread_id desc, k.checkpoint_ns desc, k.checkpoint_id desc
                 limit 1
               ) l
         where l.run_id = p_run_id
           and (n.checkpoint_ns !~ ':' or coalesce(l.root_id, v_start_id::text) is not distinct from v_start_id::text));
end
$function$;

comment on function agent.may_continue_run(agent.threads, uuid) is
    'Whether the active run of a thread may continue what another run saved.';
