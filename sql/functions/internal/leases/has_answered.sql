-- SPDX-License-Identifier: Apache-2.0
-- Whether an answer may have been used in a run, that of its command or one that an earlier run has left: a task of the
-- run has stored its answers, or a question. With durability `exit` (p_is_exit) only the question is stored if a node
-- that has used the answer precedes the one that asks, and before it the checkpoint of the subgraph which has both. The
-- library for JavaScript keeps answers for ids as writes of tasks, too.
-- Returns: true or false.
-- Locks:   none.
create or replace function agent.has_answered(
    p_deployment_id uuid,
    p_thread_id uuid,
    p_run_id uuid,
    p_is_exit boolean
) returns boolean
language plpgsql stable security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $function$
begin
    -- Other writes of the command itself are those of the task with the id 0.
    return exists (
        select from agent.checkpoint_writes w
         where w.run_id = p_run_id
           and uuid_hash_extended(w.thread_id, 0) = uuid_hash_extended(p_thread_id, 0)
           and w.deployment_id = p_deployment_id
           and w.thread_id = p_thread_id
           and w.channel in ('__resume__', '__interrupt__')
           and w.idx < 0
           and w.task_id ~ '[^0-]')
        or p_is_exit and exists (
        select from agent.checkpoint_snapshots s
         where s.run_id = p_run_id
           and uuid_hash_extended(s.thread_id, 0) = uuid_hash_extended(p_thread_id, 0)
           and s.deployment_id = p_deployment_id
           and s.thread_id = p_thread_id
           and s.checkpoint_ns <> '');
end
$function$;

comment on function agent.has_answered(uuid, uuid, uuid, boolean) is
    'Whether a task of a run has stored answers to its questions, or a question, or may have used one.';
