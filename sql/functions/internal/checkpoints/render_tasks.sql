-- SPDX-License-Identifier: Apache-2.0
-- The tasks of a checkpoint with the reports of runs about them: a task has the members that the newest report has.
-- Reports of more than 16 MB together are not shown beyond that.
-- p_until: reports that were saved later are passed over.
-- Returns: array of tasks; null when p_tasks is null.
-- Locks:   none.
create or replace function agent.render_tasks(
    p_deployment_id uuid,
    p_thread_id uuid,
    p_checkpoint_ns text,
    p_checkpoint_id uuid,
    p_tasks json,
    p_until timestamptz default 'infinity'
) returns json
language plpgsql stable security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set enable_hashjoin = off set enable_mergejoin = off set plan_cache_mode = force_generic_plan
as $function$
begin
    if not exists (
        select from agent.checkpoint_tasks x
         where x.deployment_id = p_deployment_id
           and x.thread_id = p_thread_id
           and x.checkpoint_id = p_checkpoint_id
    ) then
        return p_tasks;
    end if;
    return (
        select coalesce(json_agg(
                   case
                       when s.row_id is null or s.bytes > 16000000 then s.task
                       else agent.concat_objects(s.task, (
                           select x.task
                             from agent.checkpoint_tasks x
                            where x.ctid = s.row_id)::json)
                   end order by s.pos), '[]')
          from (
                select t.task, t.pos, r.row_id, sum(r.bytes) over (order by t.pos) as bytes
                  from json_array_elements(p_tasks) with ordinality as t (task, pos)
                  left join lateral (
                        select x.ctid as row_id, octet_length(x.task) as bytes
                          from agent.checkpoint_tasks x
                         where x.deployment_id = p_deployment_id
                           and x.thread_id = p_thread_id
                           and x.checkpoint_id = p_checkpoint_id
                           and x.task_id = case when json_typeof(t.task) = 'object' then t.task ->> 'id' end
                           and x.checkpoint_ns = p_checkpoint_ns
                           and x.saved_at <= p_until
                           and (x.run_id in (
                                select w.run_id
                                  from agent.find_swept_runs(p_deployment_id, p_thread_id) w)) is not true
                         order by x.saved_at desc, x.run_id desc
                         limit 1
                       ) r on true
               ) s);
end
$function$;

comment on function agent.render_tasks(uuid, uuid, text, uuid, json, timestamptz) is
    'The tasks of a checkpoint with the reports about them.';
