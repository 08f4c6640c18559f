-- SPDX-License-Identifier: Apache-2.0
-- The checkpoints of a batch, of arrays with one element per checkpoint and, the last eight, one per channel, in order.
-- p_deployment_ids, p_run_ids, p_epochs: the runs of the batch, to which p_runs has the positions.
-- p_channel_checkpoints: the position of the channel's checkpoint. p_kinds, p_keeps, p_lengths, p_bytes: as in
-- agent.channel_content. p_contents: the literal of an array: texts of elements of a list, or the text of a value.
-- p_elements: the literal of an array: how many elements each text has, or null.
-- Returns: the checkpoints in the order of the arrays; of several of a run with the same id the first one.
-- Locks:   none.
create or replace function agent.collect_checkpoints(
    p_deployment_ids uuid[],
    p_run_ids uuid[],
    p_epochs integer[],
    p_runs integer[],
    p_namespaces text[],
    p_checkpoint_ids uuid[],
    p_parents uuid[],
    p_next json[],
    p_tasks json[],
    p_metadata json[],
    p_formats text[],
    p_channel_checkpoints integer[],
    p_names text[],
    p_kinds text[],
    p_keeps integer[],
    p_lengths integer[],
    p_bytes bigint[],
    p_contents text[],
    p_elements text[]
) returns agent.batch_checkpoint[]
language plpgsql stable security invoker
-- Joined by hash, whatever their number: both sides are arrays.
set search_path = '' set enable_nestloop = off set enable_mergejoin = off set enable_hashjoin = on
set plan_cache_mode = force_generic_plan
as $function$
begin
    return (
        select array_agg(row(
                   p_deployment_ids[c.run], p_run_ids[c.run], p_epochs[c.run], c.checkpoint_ns, c.checkpoint_id,
                   c.parent, coalesce(g.channels, '{}'), c.next, c.tasks, c.metadata, c.format)::agent.batch_checkpoint
                   order by position)
          from unnest(p_runs, p_namespaces, p_checkpoint_ids, p_parents, p_next, p_tasks, p_metadata, p_formats)
               with ordinality
               as c (run, checkpoint_ns, checkpoint_id, parent, next, tasks, metadata, format, position)
          join (
                select min(d.position) as position
                  from unnest(p_runs, p_namespaces, p_checkpoint_ids)
                       with ordinality as d (run, checkpoint_ns, checkpoint_id, position)
                 group by d.run, d.checkpoint_ns, d.checkpoint_id
               ) f using (position)
          left join (
                select h.checkpoint,
                       array_agg(row(
                           h.name, h.kind, h.keep, h.length, h.bytes, h.content::text[], h.elements::integer[],
                           false)::agent.channel_content
                           order by h.position) as channels
                  from unnest(
                           p_channel_checkpoints, p_names, p_kinds, p_keeps, p_lengths, p_bytes, p_contents, p_elements)
                       with ordinality
                       as h (checkpoint, name, kind, keep, length, bytes, content, elements, position)
                 group by h.checkpoint
               ) g on g.checkpoint = position);
end
$function$;

comment on function agent.collect_checkpoints(
    uuid[], uuid[], integer[], integer[], text[], uuid[], uuid[], json[], json[], json[], text[], integer[], text[],
    text[], integer[], integer[], bigint[], text[], text[]) is
    'The checkpoints of a batch with their channels.';
