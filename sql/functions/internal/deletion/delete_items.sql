-- SPDX-License-Identifier: Apache-2.0
-- Deletes elements of a thread that no checkpoint contains, up to p_bytes: each row counts as its stored
-- size plus 1,000 bytes, and 1,000 for each digest, whose blob loses a use. From the end of a list, so that a list
-- never has a gap: one that is not deleted as a whole cannot be continued by a checkpoint (agent.derive_channel).
-- p_list_id: of this list only; null: of all lists of the thread.
-- Returns: the unused part of p_bytes; 0 when elements are left for agent.sweep_state.
-- Locks:   the rows of agent.item_sweeps, skipping those that another sweep holds.
create or replace function agent.delete_items(
    p_deployment_id uuid,
    p_thread_id uuid,
    p_bytes bigint,
    p_list_id bigint default null
) returns bigint
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set enable_sort = off set plan_cache_mode = force_generic_plan
as $function$
declare
    v_left    bigint := p_bytes;
    v_list_id bigint;
    v_first   integer;
    v_from    integer;
    v_row     record;
    v_uses    agent.blob_use[] := '{}';
begin
    for v_list_id, v_first in
        select w.list_id, w.first
          from agent.item_sweeps w
         where w.deployment_id = p_deployment_id
           and w.thread_id = p_thread_id
           and (p_list_id is null or w.list_id = p_list_id)
         order by w.deployment_id, w.thread_id, w.list_id
           for update skip locked
    loop
        v_from := null;
        for v_row in
            select i.position, 1000 + pg_column_size(i.content)
                   + case when i.is_digests then 1000 * i.elements else 0 end as bytes
              from agent.checkpoint_items i
             where i.deployment_id = p_deployment_id
               and i.thread_id = p_thread_id
               and i.list_id = v_list_id
               and i.position >= v_first
             order by i.deployment_id desc, i.thread_id desc, i.list_id desc, i.position desc
        loop
            v_left := v_left - v_row.bytes;
            v_from := v_row.position;
            exit when v_left <= 0;
        end loop;
        with deleted as (
            delete from agent.checkpoint_items i
             where i.deployment_id = p_deployment_id
               and i.thread_id = p_thread_id
               and i.list_id = v_list_id
               and i.position >= v_from
            returning i.is_digests, i.content
        )
        select v_uses || array_agg(row(p_deployment_id, p_thread_id, c.digest, -1)::agent.blob_use) into v_uses
          from deleted d
         cross join lateral agent.split_digests(d.content) c
         where d.is_digests;
        if v_left > 0 or v_from <= v_first then
            delete from agent.item_sweeps w
             where w.deployment_id = p_deployment_id
               and w.thread_id = p_thread_id
               and w.list_id = v_list_id;
        end if;
        exit when v_left <= 0;
    end loop;
    if cardinality(v_uses) > 0 then
        perform agent.save_blobs('{}', v_uses);
    end if;
    return greatest(v_left, 0);
end
$function$;

comment on function agent.delete_items(uuid, uuid, bigint, bigint) is
    'Deletes elements that no checkpoint contains.';
