-- SPDX-License-Identifier: Apache-2.0
-- The tasks of the state in which a run failed. Tasks without an error get that of the run; nodes without a
-- task get one.
-- Returns: array of tasks.
-- Locks:   none.
create or replace function agent.render_failed_tasks(
    p_tasks json,
    p_next json,
    p_run_id uuid,
    p_message text
) returns json
language plpgsql immutable parallel safe security invoker set search_path = ''
as $function$
begin
    if json_array_length(p_tasks) > 0 then
        return (
            select json_agg(
                       case
                           when json_typeof(t.task) <> 'object' or t.task ->> 'error' is not null
                           then t.task
                           else agent.concat_objects(t.task, json_build_object('error', p_message))
                       end order by t.pos)
              from json_array_elements(p_tasks) with ordinality as t (task, pos));
    end if;
    return (
        select coalesce(json_agg(
                   json_build_object(
                       'id', p_run_id,
                       'name', n.node,
                       'path', json_build_array('__pregel_pull', n.node),
                       'error', p_message,
                       'interrupts', json_build_array(),
                       'checkpoint', null,
                       'state', null,
                       'result', null) order by n.pos), '[]')
          from json_array_elements_text(p_next) with ordinality as n (node, pos));
end
$function$;

comment on function agent.render_failed_tasks(json, json, uuid, text) is
    'The tasks of the state in which a run failed.';
