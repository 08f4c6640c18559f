-- SPDX-License-Identifier: Apache-2.0
-- The members that a checkpoint shows of the run that saved it, which is of its thread or of the thread that was
-- copied.
-- Returns: one row or none: members of the checkpoint's metadata, without the id of the thread.
-- Locks:   none.
create or replace function agent.find_run_metadata(
    p_deployment_id uuid,
    p_thread_id uuid,
    p_run_id uuid
) returns table (metadata jsonb)
language sql stable parallel safe
-- No SET clause: it would keep the body from being inlined into FROM.
as $function$
    select o.metadata
      from (
            select ((x.config -> 'metadata') - array['source', 'step', 'writes', 'parents'])
                   || jsonb_build_object(
                       'run_id', x.run_id,
                       'user_id', x.config #> '{configurable,user_id}',
                       'graph_id', x.graph_id,
                       'assistant_id', x.assistant_id) as metadata
              from agent.runs x
             where x.run_id = p_run_id
               and x.deployment_id is not distinct from p_deployment_id
               and x.thread_id is not distinct from p_thread_id
            union all
            select x.metadata
              from agent.copied_runs x
             where x.deployment_id = p_deployment_id
               and x.thread_id = p_thread_id
               and x.run_id = p_run_id
           ) o
     limit 1
$function$;

comment on function agent.find_run_metadata(uuid, uuid, uuid) is 'Members that a checkpoint shows of its run.';
