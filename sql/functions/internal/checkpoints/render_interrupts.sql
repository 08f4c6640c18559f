-- SPDX-License-Identifier: Apache-2.0
-- The interrupts in the tasks of a checkpoint.
-- Returns: by_task: object of arrays by task id, only of tasks with interrupts; flat: one array of all.
-- Locks:   none.
create or replace function agent.render_interrupts(
    p_tasks json,
    out by_task json,
    out flat json
)
language plpgsql immutable parallel safe security invoker set search_path = ''
as $function$
begin
    by_task := '{}';
    flat := '[]';
    if json_array_length(coalesce(p_tasks, '[]')) = 0 then
        return;
    end if;
    select coalesce(json_object_agg(t.task ->> 'id', t.task -> 'interrupts'), '{}')
      into by_task
      from json_array_elements(p_tasks) as t (task)
     where json_typeof(t.task) = 'object'
       and t.task ->> 'id' is not null
       and json_typeof(t.task -> 'interrupts') = 'array'
       and t.task -> 'interrupts' ->> 0 is not null;
    select coalesce(json_agg(i.interrupt order by o.pos, i.pos), '[]')
      into flat
      from json_each(by_task) with ordinality as o (key, list, pos)
     cross join lateral json_array_elements(o.list) with ordinality as i (interrupt, pos);
end
$function$;

comment on function agent.render_interrupts(json) is
    'The interrupts in the tasks of a checkpoint.';
