-- SPDX-License-Identifier: Apache-2.0
-- Parses the items of agent.save_batch in one pass.
-- Returns: the runs that the items name, with their ends; the events, checkpoints, records and tasks, in order; null
--          for none. Raises MA002 for an item of unknown type, an error of class 22 for the path of an event that leads
--          nowhere.
-- Locks:   none.
create or replace function agent.parse_batch(
    p_items json,
    out runs agent.leased_run[],
    out events agent.batch_event[],
    out checkpoints agent.batch_checkpoint[],
    out records agent.batch_record[],
    out tasks agent.batch_task[]
)
language plpgsql stable security invoker
set search_path = '' set plan_cache_mode = force_generic_plan
as $function$
declare
    v_has_unknown boolean;
begin
    with item as materialized (
        select i.*
          from json_to_recordset(p_items) as i (
                   d uuid, r uuid, e integer, s bigint, type text, event text, data json,
                   ns text, checkpoint_id uuid, path json, parent uuid, "values" json, next json, tasks json,
                   metadata json, format text, status text, error json, value json, task json,
                   checkpoint json, channels json, task_id text, task_path text, writes json,
                   digest text, value_type text, "text" text, base64 text, part text, parts text, f boolean)
    )
    select (
               select array_agg(agent.make_leased_run(
                          k.d, k.r, k.e, k.locks_thread, k.status, k.error, k.seq, k.is_failure, k.value))
                 from (
                       select i.d, i.r, i.e,
                              bool_or(i.type <> 'event' and i.type <> 'task') as locks_thread,
                              max(i.status) filter (where i.type = 'end') as status,
                              max(i.error::text) filter (where i.type = 'end')::json as error,
                              max(i.s) filter (where i.type = 'event') as seq,
                              coalesce(bool_or(i.f) filter (where i.type = 'end'), false) as is_failure,
                              max(i.value::text) filter (where i.type = 'end')::json as value
                         from item i
                        group by i.d, i.r, i.e
                      ) k
           ),
           (
               select array_agg(agent.make_event(
                          i.d, i.r, i.e, i.s, i.event,
                          case
                              when i.checkpoint_id is null then coalesce(i.data::text, 'null')
                              when i.path is not null then agent.place_values(
                                  i.data, array(select json_array_elements_text(i.path)))
                          end,
                          i.checkpoint_id))
                 from item i
                where i.type = 'event'
           ),
           (
               select array_agg(row(
                          i.d, i.r, i.e, coalesce(i.ns, ''), i.checkpoint_id, i.parent, v.channels,
                          coalesce(i.next, '[]'), coalesce(i.tasks, '[]'),
                          coalesce(i.metadata, '{}'), i.format)::agent.batch_checkpoint)
                 from item i
                cross join lateral agent.split_values(coalesce(i."values", '{}')) v
                where i.type = 'checkpoint'
           ),
           (
               select array_agg(row(
                          i.d, i.r, i.e, i.type, coalesce(i.ns, ''), i.checkpoint_id, i.parent, i.checkpoint,
                          i.metadata, i.channels, i.task_id, i.task_path, i.writes, i.digest, i.value_type, i."text",
                          i.base64, i.part, i.parts)::agent.batch_record)
                 from item i
                where i.type in ('put', 'put_writes', 'blob')
           ),
           (
               select array_agg(row(
                          i.d, i.r, i.e, coalesce(i.ns, ''), i.checkpoint_id, i.task ->> 'id',
                          agent.pick_members(
                              i.task,
                              array['error', 'interrupts', 'result', 'checkpoint', 'state'])::text)::agent.batch_task)
                 from item i
                where i.type = 'task'
           ),
           exists (
               select
                 from item i
                where (i.type not in ('event', 'checkpoint', 'end', 'task', 'put', 'put_writes', 'blob')) is not false
           )
      into runs, events, checkpoints, records, tasks, v_has_unknown;

    -- To skip an unknown item would be to lose data.
    if v_has_unknown then
        raise exception using errcode = 'MA002', message = 'a batch has an item of unknown type';
    end if;
end
$function$;

comment on function agent.parse_batch(json) is 'Parses the items of agent.save_batch.';
