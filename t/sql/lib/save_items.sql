-- SPDX-License-Identifier: Apache-2.0
-- A batch of agent.save_batch as the tests write it: one JSON array of a runner's messages, each with "d":
-- deployment_id, "r": run_id, "e": epoch, "s": its number, if it is an event, and perhaps "b": the number of the batch,
-- else the next one, and "v": the last event before it, else that before its first one. The supervisor makes the same arrays of valid lines: mod_agent/supervisor/statement/save_params.c, t/unit/supervisor_save_params.c.

-- The rows of a list whose elements are short: their texts, and how many elements each has.
create function public.split_rows(p_list json, out content text[], out elements integer[])
language plpgsql immutable as $function$
declare
    v_text text;
    v_row  text;
    v_n    integer := 0;
begin
    content := '{}';
    elements := '{}';
    for v_text in select x::text from json_array_elements(p_list) x
    loop
        if v_n between 1 and 127 and octet_length(v_row) + 1 + octet_length(v_text) <= 2048 then
            v_row := v_row || ',' || v_text;
            v_n := v_n + 1;
        else
            if v_n > 0 then
                content := content || v_row;
                elements := elements || v_n;
            end if;
            v_row := v_text;
            v_n := 1;
        end if;
    end loop;
    content := content || v_row;
    elements := elements || v_n;
end
$function$;

-- The values of a checkpoint as channels.
create function public.split_values(p_values json)
returns table (name text, kind text, keep integer, length integer, bytes bigint, content text[], elements integer[])
language sql immutable as $function$
    select v.key, n.kind, case when n.kind = 'list' then (v.value #>> '{$list,keep}')::integer end,
           case when n.kind in ('array', 'list') then json_array_length(n.value) end,
           (select coalesce(sum(octet_length(x) + 1), 0) from unnest(t.content) x), t.content, t.elements
      from json_each(p_values) v
     cross join lateral (
            select case
                       when json_typeof(v.value) = 'object' and (select count(*) from json_object_keys(v.value)) = 1
                       then (select k from json_object_keys(v.value) k)
                   end as only) o
     cross join lateral (
            select case
                       when json_typeof(v.value) = 'array' then 'array'
                       when o.only = '$list' then case
                           when json_typeof(v.value #> '{$list,items}') = 'array'
                                and (v.value #> '{$list,keep}')::text ~ '^[0-9]{1,9}$'
                           then 'list' end
                       when o.only = '$same' then case when (v.value -> '$same')::text = 'true' then 'same' end
                       else 'value'
                   end as kind,
                   case o.only
                       when '$list' then v.value -> '$list' -> 'items'
                       when '$value' then v.value -> '$value'
                       else v.value
                   end as value) n
     cross join lateral (
            select case
                       when n.kind in ('array', 'list')
                       then octet_length(n.value::text) < 64 * json_array_length(n.value)
                       else false
                   end as is_short) l
     cross join lateral (
            select r.content, r.elements
              from public.split_rows(n.value) r
             where l.is_short
             union all
            select case
                       when n.kind = 'value' then array[n.value::text]
                       when n.kind is null or n.kind = 'same' then '{}'
                       else array(select x::text from json_array_elements(n.value) x)
                   end, null
             where not l.is_short) t
$function$;

-- The parameters of agent.save_batch after the first, in its order.
create type public.batch as (
    d uuid[], r uuid[], e integer[], batch_no integer[], is_counted boolean[],
    saved_seq bigint[], locks_thread boolean[], seq bigint[], status text[], error json[],
    is_failure boolean[], result json[], event_run integer[], event_seq bigint[], event text[], data text[], event_checkpoint_id uuid[],
    path json[], checkpoint_run integer[], ns text[], checkpoint_id uuid[], parent uuid[], next json[], tasks json[],
    metadata json[], format text[], channel_checkpoint integer[], channel_name text[], kind text[], keep integer[],
    length integer[], bytes bigint[], content text[], elements text[], records json, reports json
);

create function public.make_batch(p_items json) returns public.batch
language sql volatile as $function$
    -- A member that may be a string is taken from the message: a record would not have its text.
    with item as materialized (
        select *
          from rows from (
                   json_to_recordset(p_items) as (
                       d uuid, r uuid, e integer, b integer, v bigint, s bigint, f boolean, type text, event text, ns text,
                       checkpoint_id uuid, path json, parent uuid, "values" json, next json, tasks json,
                       metadata json, format text, status text, error json),
                   json_array_elements(p_items))
               with ordinality as i (
                   d, r, e, b, v, s, f, type, event, ns, checkpoint_id, path, parent, "values", next, tasks, metadata,
                   format, status, error, message, n)
    ),
    run as materialized (
        select row_number() over (order by min(i.n))::integer as k, i.d, i.r, i.e,
               coalesce(max(i.b), (
                   select q.batch_no + 1
                     from agent.run_queue q
                    where q.run_id = i.r and q.deployment_id is not distinct from i.d), 1) as batch_no,
               bool_or(i.type <> 'event') as is_counted,
               coalesce(max(i.v), nullif(min(i.s) - 1, -1)) as saved_seq,
               bool_or(i.type not in ('event', 'task')) as locks_thread,
               max(i.s) as seq,
               max(i.status) filter (where i.type = 'end') as status,
               max(i.error::text) filter (where i.type = 'end')::json as error,
               coalesce(bool_or(i.f) filter (where i.type = 'end'), false) as is_failure,
               max(nullif((i.message -> 'value')::text, 'null')) filter (where i.type = 'end')::json as result
          from item i
         group by i.d, i.r, i.e
    ),
    event as materialized (
        select i.*, k.k from item i join run k on k.r = i.r and k.e = i.e and k.d is not distinct from i.d
         where i.type = 'event'
    ),
    checkpoint as materialized (
        select i.*, k.k, row_number() over (order by i.n)::integer as c
          from item i join run k on k.r = i.r and k.e = i.e and k.d is not distinct from i.d
         where i.type = 'checkpoint'
    ),
    channel as materialized (
        select c.c, v.*, row_number() over () as n
          from (select * from checkpoint order by c) c
         cross join lateral public.split_values(coalesce(c."values", '{}')) v
    )
    select (k.d, k.r, k.e, k.batch_no, k.is_counted, k.saved_seq, k.locks_thread, k.seq, k.status, k.error,
            k.is_failure, k.result,
            coalesce(i.k, '{}'), coalesce(i.s, '{}'), coalesce(i.event, '{}'), coalesce(i.data, '{}'),
            coalesce(i.checkpoint_id, '{}'), coalesce(i.path, '{}'),
            coalesce(c.k, '{}'), coalesce(c.ns, '{}'), coalesce(c.id, '{}'), coalesce(c.parent, '{}'),
            coalesce(c.next, '{}'), coalesce(c.tasks, '{}'), coalesce(c.metadata, '{}'), coalesce(c.format, '{}'),
            coalesce(h.c, '{}'), coalesce(h.name, '{}'), coalesce(h.kind, '{}'), coalesce(h.keep, '{}'),
            coalesce(h.length, '{}'), coalesce(h.bytes, '{}'), coalesce(h.content, '{}'),
            coalesce(h.elements, '{}'),
            (select json_agg(x.message order by x.n) from item x where x.type in ('put', 'put_writes', 'blob')),
            (select json_agg(x.message order by x.n) from item x where x.type = 'task'))::public.batch
      from (select array_agg(k.d order by k.k) d, array_agg(k.r order by k.k) r, array_agg(k.e order by k.k) e,
                   array_agg(k.batch_no order by k.k) batch_no, array_agg(k.is_counted order by k.k) is_counted,
                   array_agg(k.saved_seq order by k.k) saved_seq,
                   array_agg(k.locks_thread order by k.k) locks_thread, array_agg(k.seq order by k.k) seq,
                   array_agg(k.status order by k.k) status, array_agg(k.error order by k.k) error,
                   array_agg(k.is_failure order by k.k) is_failure, array_agg(k.result order by k.k) result
              from run k) k
     cross join (
            select array_agg(i.k order by i.n) k, array_agg(i.s order by i.n) s, array_agg(i.event order by i.n) event,
                   array_agg(coalesce((i.message -> 'data')::text, 'null') order by i.n) as data,
                   array_agg(i.checkpoint_id order by i.n) checkpoint_id, array_agg(i.path order by i.n) path
              from event i) i
     cross join (
            select array_agg(c.k order by c.c) k, array_agg(coalesce(c.ns, '') order by c.c) ns,
                   array_agg(c.checkpoint_id order by c.c) id, array_agg(c.parent order by c.c) parent,
                   array_agg(coalesce(c.next, '[]') order by c.c) next,
                   array_agg(coalesce(c.tasks, '[]') order by c.c) tasks,
                   array_agg(coalesce(c.metadata, '{}') order by c.c) metadata, array_agg(c.format order by c.c) format
              from checkpoint c) c
     cross join (
            select array_agg(h.c order by h.n) c, array_agg(h.name order by h.n) as name,
                   array_agg(h.kind order by h.n) kind, array_agg(h.keep order by h.n) keep,
                   array_agg(h.length order by h.n) length, array_agg(h.bytes order by h.n) bytes,
                   array_agg(h.content::text order by h.n) content,
                   array_agg(h.elements::text order by h.n) elements
              from channel h) h
$function$;

create function public.save_columns(p_worker bigint, p public.batch)
returns table (run_id uuid, outcome text, finished boolean, promoted boolean, elapsed_usec bigint)
language sql volatile as $function$
    select run_id, outcome, finished, promoted, elapsed_usec
      from agent.save_batch(
            p_worker,
            p.d, p.r, p.e, p.batch_no, p.is_counted, p.saved_seq, p.locks_thread, p.seq, p.status, p.error, p.is_failure, p.result, p.event_run, p.event_seq,
            p.event, p.data, p.event_checkpoint_id, p.path, p.checkpoint_run, p.ns, p.checkpoint_id, p.parent, p.next,
            p.tasks, p.metadata, p.format, p.channel_checkpoint, p.channel_name, p.kind, p.keep, p.length, p.bytes,
            p.content, p.elements, p.records, p.reports)
$function$;

create function public.save_items(p_worker bigint, p_items json)
returns table (run_id uuid, outcome text, finished boolean, promoted boolean)
language sql volatile as $function$
    select s.run_id, s.outcome, s.finished, s.promoted
      from public.make_batch(p_items) b
     cross join lateral public.save_columns(p_worker, b) s
$function$;
