-- SPDX-License-Identifier: Apache-2.0
-- Parses the records of a batch: messages put, put_writes and blob, as in agent.save_batch.
-- Returns: the records, in order.
-- Locks:   none.
create or replace function agent.parse_records(p_records json) returns agent.batch_record[]
language plpgsql stable security invoker
set search_path = '' set plan_cache_mode = force_generic_plan
as $function$
begin
    return (
        select array_agg(row(
                   i.d, i.r, i.e, i.type, coalesce(i.ns, ''), i.checkpoint_id, i.parent, i.checkpoint, i.metadata,
                   i.channels, i.task_id, i.task_path, i.writes, i.digest, i.value_type, i."text", i.base64, i.part,
                   i.parts)::agent.batch_record)
          from json_to_recordset(p_records) as i (
                   d uuid, r uuid, e integer, type text, ns text, checkpoint_id uuid, parent uuid, checkpoint json,
                   metadata json, channels json, task_id text, task_path text, writes json, digest text,
                   value_type text, "text" text, base64 text, part text, parts text));
end
$function$;

comment on function agent.parse_records(json) is 'Parses the records of a batch.';
