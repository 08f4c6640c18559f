-- SPDX-License-Identifier: Apache-2.0
-- Copies the blobs in agent.copy_blobs, with the uses counted there, up to p_bytes: each part counts as its stored size
-- plus 1,000 bytes.
-- Returns: left_bytes: the unused part of p_bytes; 0 or less when something may be left; null when a blob does not
--          exist: its use was replaced, and it was swept. stored_bytes: what the new rows take, without indexes.
-- Locks:   the caller holds the row of the copy.
create or replace function agent.copy_blobs(
    p_copy agent.thread_copies,
    p_bytes bigint,
    out left_bytes bigint,
    out stored_bytes bigint
)
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set enable_hashjoin = off set enable_mergejoin = off set enable_sort = off
set plan_cache_mode = force_generic_plan
as $function$
declare
    -- The header of a row and its values of fixed length, which agent.compose_measure counts too.
    c_fixed constant integer := 92;
    v_row   record;
    v_last  record;
begin
    left_bytes := p_bytes;
    stored_bytes := 0;
    for v_row in
        select q.digest, q.next_part, i.part, coalesce(i.stored, 0) as stored, coalesce(1000 + i.stored, 0) as bytes
          from agent.copy_blobs q
          left join lateral (
                select b.part, c_fixed + pg_column_size(b.content) as stored
                  from agent.checkpoint_blobs b
                 where b.deployment_id = p_copy.deployment_id
                   and b.thread_id = p_copy.source_id
                   and b.digest = q.digest
                   and b.part >= q.next_part
                 order by b.deployment_id, b.thread_id, b.digest, b.part
               ) i on true
         where q.deployment_id = p_copy.deployment_id
           and q.thread_id = p_copy.thread_id
         order by q.deployment_id, q.thread_id, q.digest
    loop
        exit when left_bytes <= 0;
        if v_row.part is null and v_row.next_part = 0 then
            left_bytes := null;
            stored_bytes := 0;
            return;
        end if;
        left_bytes := left_bytes - v_row.bytes;
        stored_bytes := stored_bytes + v_row.stored;
        v_last := v_row;
    end loop;
    if v_last is null then
        return;
    end if;

    insert into agent.checkpoint_blobs (
        deployment_id, thread_id, digest, part, parts, stored_parts, uses, type, is_text, content)
    select p_copy.deployment_id, p_copy.thread_id, q.digest, i.part, i.parts, i.stored_parts,
           case when i.part = 0 then q.uses end, i.type, i.is_text, i.content
      from agent.copy_blobs q
     cross join lateral (
            select b.part, b.parts, b.stored_parts, b.type, b.is_text, b.content
              from agent.checkpoint_blobs b
             where b.deployment_id = p_copy.deployment_id
               and b.thread_id = p_copy.source_id
               and b.digest = q.digest
               and b.part >= q.next_part
               and (q.digest < v_last.digest or b.part <= v_last.part)
             order by b.deployment_id, b.thread_id, b.digest, b.part
           ) i
     where q.deployment_id = p_copy.deployment_id
       and q.thread_id = p_copy.thread_id
       and q.digest <= v_last.digest;

    delete from agent.copy_blobs q
     where q.deployment_id = p_copy.deployment_id
       and q.thread_id = p_copy.thread_id
       and (q.digest < v_last.digest or left_bytes > 0);
    update agent.copy_blobs q
       set next_part = v_last.part + 1
     where q.deployment_id = p_copy.deployment_id
       and q.thread_id = p_copy.thread_id
       and q.digest = v_last.digest;
end
$function$;

comment on function agent.copy_blobs(agent.thread_copies, bigint) is 'Copies blobs of a thread into its copy.';
