-- SPDX-License-Identifier: Apache-2.0
-- The metadata of a checkpoint with `writes`, an object: node -> what it wrote in the step that led to the checkpoint;
-- several tasks of a node: an array. The runners of applications do not send it, so that nothing is stored twice: it is
-- the results of the tasks of the parent, and of the first checkpoint of a run the run's input. Beyond 16 MB of reports
-- about tasks the nodes are omitted. Metadata that have it are returned as they are.
-- p_parent_id, p_run_id, p_created_at, p_metadata: of the checkpoint.
-- Returns: the object; without a known result `writes` stays null.
-- Locks:   none.
create or replace function agent.add_writes(
    p_deployment_id uuid,
    p_thread_id uuid,
    p_checkpoint_ns text,
    p_parent_id uuid,
    p_run_id uuid,
    p_created_at timestamptz,
    p_metadata json
) returns json
language plpgsql stable security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set enable_hashjoin = off set enable_mergejoin = off set plan_cache_mode = force_generic_plan
as $function$
declare
    -- A runner chooses the text. With durability exit, steps between the parent and the checkpoint were not saved.
    c_step   constant text := '^-?[0-9]{1,9}$';
    v_step   integer := case when p_metadata ->> 'step' ~ c_step then p_metadata ->> 'step' end;
    v_parent record;
    v_writes json;
begin
    if coalesce(json_typeof(p_metadata -> 'writes') <> 'null', p_metadata is null) then
        return p_metadata;
    end if;
    select k.run_id, k.tasks, case when k.metadata ->> 'step' ~ c_step then k.metadata ->> 'step' end::integer as step
      into v_parent
      from agent.find_checkpoint(p_deployment_id, p_thread_id, p_checkpoint_ns, p_parent_id) k;
    if p_metadata ->> 'source' = 'loop' and v_step = v_parent.step + 1 then
        select json_object_agg(w.name, w.written order by w.pos) into v_writes
          from (
                select o.name, min(o.pos) as pos,
                       case when count(*) > 1 then json_agg(o.written order by o.pos) else (array_agg(o.written))[1] end
                       as written
                  from (
                        select s.task ->> 'name' as name, s.pos, agent.render_result(coalesce((
                                   select x.task::json
                                     from agent.checkpoint_tasks x
                                    where x.ctid = s.row_id) -> 'result', s.task -> 'result')) as written
                          from (
                                select t.task, t.pos, r.row_id, sum(r.bytes) over (order by t.pos) as bytes
                                  from json_array_elements(v_parent.tasks) with ordinality as t (task, pos)
                                  left join lateral (
                                        select x.ctid as row_id, octet_length(x.task) as bytes
                                          from agent.checkpoint_tasks x
                                         where x.deployment_id = p_deployment_id
                                           and x.thread_id = p_thread_id
                                           and x.checkpoint_id = p_parent_id
                                           and x.task_id = t.task ->> 'id'
                                           and x.checkpoint_ns = p_checkpoint_ns
                                           and (x.run_id = p_run_id or x.saved_at <= p_created_at)
                                           and (x.run_id in (
                                                select w.run_id
                                                  from agent.find_swept_runs(p_deployment_id, p_thread_id) w))
                                               is not true
                                         -- Other runs may have executed the same task again, from its checkpoint.
                                         order by x.run_id = p_run_id desc nulls last, x.saved_at desc, x.run_id desc
                                         limit 1
                                       ) r on true
                                 where json_typeof(t.task) = 'object'
                               ) s
                         where s.bytes <= 16000000 is not false
                       ) o
                 where o.name is not null
                   and o.written is not null
                 group by o.name
               ) w;
    elsif p_metadata ->> 'source' = 'input' and p_checkpoint_ns = ''
          and v_parent.run_id is distinct from p_run_id
    then
        select json_build_object('__start__', r.input) into v_writes
          from agent.find_run(p_deployment_id, p_thread_id, p_run_id) r
         where r.input is not null;
    end if;
    return case
        when v_writes is null then p_metadata
        else agent.concat_objects(p_metadata, json_build_object('writes', v_writes))
    end;
end
$function$;

comment on function agent.add_writes(uuid, uuid, text, uuid, uuid, timestamptz, json) is
    'The metadata of a checkpoint with what its step wrote.';
