-- SPDX-License-Identifier: Apache-2.0
-- Saves a part of a blob that comes in several. They come in order; those that are stored change nothing. A first part
-- that announces another type or number of parts than an incomplete blob begins it again.
-- p_part: part, parts, type, is_text, content.
-- Returns: nothing. Raises an error of class 22 for a part that does not continue the blob.
-- Locks:   the caller holds the thread.
create or replace function agent.save_part(p_part agent.checkpoint_blobs) returns void
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $function$
declare
    v_blob record;
begin
    select b.parts, b.stored_parts, (b.parts, b.type) = (p_part.parts, p_part.type) as is_same
      into v_blob
      from agent.checkpoint_blobs b
     where b.deployment_id = p_part.deployment_id
       and b.thread_id = p_part.thread_id
       and b.digest = p_part.digest
       and b.part = 0;
    if v_blob.stored_parts = v_blob.parts or v_blob.is_same and p_part.part < v_blob.stored_parts then
        return;
    elsif p_part.part > 0 and (v_blob.is_same and p_part.part = v_blob.stored_parts) is not true then
        raise exception using errcode = 'invalid_parameter_value', message = 'a part does not continue its blob';
    end if;

    insert into agent.checkpoint_blobs (
        deployment_id, thread_id, digest, part, parts, stored_parts, uses, type, is_text, content)
    values (
        p_part.deployment_id, p_part.thread_id, p_part.digest, p_part.part,
        case when p_part.part = 0 then p_part.parts end, case when p_part.part = 0 then 1 end,
        case when p_part.part = 0 then 0 end, case when p_part.part = 0 then p_part.type end, p_part.is_text,
        p_part.content)
        on conflict (deployment_id, thread_id, digest, part) do update
       set parts = excluded.parts,
           stored_parts = excluded.stored_parts,
           type = excluded.type,
           is_text = excluded.is_text,
           content = excluded.content;
    if p_part.part = 0 then
        insert into agent.blob_sweeps (deployment_id, thread_id, due_at)
        values (p_part.deployment_id, p_part.thread_id, agent.now() + agent.sweep_delay())
            on conflict do nothing;
    else
        update agent.checkpoint_blobs b
           set stored_parts = p_part.part + 1
         where b.deployment_id = p_part.deployment_id
           and b.thread_id = p_part.thread_id
           and b.digest = p_part.digest
           and b.part = 0;
    end if;
end
$function$;

comment on function agent.save_part(agent.checkpoint_blobs) is 'Saves a part of a blob.';
