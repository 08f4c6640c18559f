-- SPDX-License-Identifier: Apache-2.0
-- The threads that a search or a count includes, without those of stateless runs; null arguments include all.
-- p_metadata: members that the thread's metadata contains; p_excluded: objects none of which it contains.
-- Returns: rows of agent.threads.
-- Plan:    when the arguments are constants, those with metadata are found by threads_metadata if it contains a scalar:
--          objects and arrays without one have no key in that index, which would be scanned for all deployments. The
--          others are examined one after the other, within their deployment.
-- Locks:   none.
create or replace function agent.find_threads(
    p_deployment_id uuid,
    p_ids uuid[],
    p_metadata jsonb,
    p_status text,
    p_excluded jsonb[]
) returns setof agent.threads
language sql stable parallel safe
-- No SET clause: it would keep the body from being inlined into FROM.
as $function$
    select t.*
      from agent.threads t
     where not t.temporary
       and not t.is_deleted
       -- Metadata are found below their deployment; without this condition the planner has no other index for them.
       and (t.deployment_id = p_deployment_id or p_metadata is not null and p_ids is null
            and jsonb_path_exists(p_metadata, 'strict $.** ? (@.type() != "object" && @.type() != "array")'))
       and (p_ids is null or t.thread_id = any (p_ids))
       and (p_metadata is null
            or case
                   when p_ids is null
                        and jsonb_path_exists(p_metadata, 'strict $.** ? (@.type() != "object" && @.type() != "array")')
                   then jsonb_set('{}', array[t.deployment_id::text], t.metadata)
                        @> jsonb_set('{}', array[p_deployment_id::text], p_metadata)
                   else t.metadata @> p_metadata
               end)
       and (p_status is null or t.status = p_status)
       and (p_excluded is null or not t.metadata @> any (p_excluded))
$function$;

comment on function agent.find_threads(uuid, uuid[], jsonb, text, jsonb[]) is
    'The threads that a search includes.';
