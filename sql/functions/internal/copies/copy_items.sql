-- SPDX-License-Identifier: Apache-2.0
-- Copies the elements in agent.copy_lists, up to p_bytes: each row counts as its stored size plus 1,000 bytes, and
-- a digest 1,000 bytes more: its use is noted in agent.copy_blobs.
-- Returns: left_bytes: the unused part of p_bytes; 0 or less when something may be left. stored_bytes: what the new
--          rows take, without indexes.
-- Locks:   the caller holds the row of the copy.
create or replace function agent.copy_items(
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
        select l.list_id, i.position, i.stored, i.stored + 1000 + i.uses * 1000 as bytes
          from agent.copy_lists l
         cross join lateral (
                select x.position, c_fixed + pg_column_size(x.content) as stored,
                       case when x.is_digests then x.elements else 0 end as uses
                  from agent.checkpoint_items x
                 where x.deployment_id = p_copy.deployment_id
                   and x.thread_id = p_copy.source_id
                   and x.list_id = l.list_id
                   and x.position >= l.first
                   and x.position < l.until
                 order by x.deployment_id, x.thread_id, x.list_id, x.position
               ) i
         where l.deployment_id = p_copy.deployment_id
           and l.thread_id = p_copy.thread_id
         order by l.deployment_id, l.thread_id, l.list_id
    loop
        exit when left_bytes <= 0;
        left_bytes := left_bytes - v_row.bytes;
        stored_bytes := stored_bytes + v_row.stored;
        v_last := v_row;
    end loop;
    if v_last is null then
        delete from agent.copy_lists l
         where l.deployment_id = p_copy.deployment_id
           and l.thread_id = p_copy.thread_id;
        return;
    end if;

    with copied as (
        insert into agent.checkpoint_items (
            deployment_id, thread_id, list_id, position, elements, end_bytes, is_digests, content)
        select p_copy.deployment_id, p_copy.thread_id, l.list_id, i.position, i.elements, i.end_bytes, i.is_digests,
               i.content
          from agent.copy_lists l
         cross join lateral (
                select x.position, x.elements, x.end_bytes, x.is_digests, x.content
                  from agent.checkpoint_items x
                 where x.deployment_id = p_copy.deployment_id
                   and x.thread_id = p_copy.source_id
                   and x.list_id = l.list_id
                   and x.position >= l.first
                   and x.position < l.until
                   and (l.list_id < v_last.list_id or x.position <= v_last.position)
                 order by x.deployment_id, x.thread_id, x.list_id, x.position
               ) i
         where l.deployment_id = p_copy.deployment_id
           and l.thread_id = p_copy.thread_id
           and l.list_id <= v_last.list_id
        returning is_digests, content
    )
    insert into agent.copy_blobs as q (deployment_id, thread_id, digest, uses)
    select p_copy.deployment_id, p_copy.thread_id, d.digest, count(*)
      from copied c
     cross join lateral agent.split_digests(case when c.is_digests then c.content else '' end) d
     group by d.digest
        on conflict (deployment_id, thread_id, digest) do update
       set uses = q.uses + excluded.uses;

    delete from agent.copy_lists l
     where l.deployment_id = p_copy.deployment_id
       and l.thread_id = p_copy.thread_id
       and (l.list_id < v_last.list_id or left_bytes > 0);
    update agent.copy_lists l
       set first = v_last.position + 1
     where l.deployment_id = p_copy.deployment_id
       and l.thread_id = p_copy.thread_id
       and l.list_id = v_last.list_id;
end
$function$;

comment on function agent.copy_items(agent.thread_copies, bigint) is
    'Copies elements of a thread into its copy.';
