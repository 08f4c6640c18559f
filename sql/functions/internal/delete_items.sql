-- SPDX-License-Identifier: Apache-2.0
-- Deletes elements of a thread that no checkpoint contains, up to p_bytes: each row counts as its stored
-- size plus 1,000 bytes. From the end of a list, so that a list never has a gap: one that is not deleted as a whole
-- cannot be continued by a checkpoint (agent.derive_channel).
-- p_list_id: of this list only; null: of all lists of the thread.
-- Returns: the unused part of p_bytes; 0 when elements are left for agent.sweep_items.
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
            select i.position, 1000 + pg_column_size(i.content) as bytes
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
        delete from agent.checkpoint_items i
         where i.deployment_id = p_deployment_id
           and i.thread_id = p_thread_id
           and i.list_id = v_list_id
           and i.position >= v_from;
        if v_left <= 0 and v_from > v_first then
            return 0;
        end if;
        delete from agent.item_sweeps w
         where w.deployment_id = p_deployment_id
           and w.thread_id = p_thread_id
           and w.list_id = v_list_id;
        if v_left <= 0 then
            return 0;
        end if;
    end loop;
    return v_left;
end
$function$;

comment on function agent.delete_items(uuid, uuid, bigint, bigint) is
    'Deletes elements that no checkpoint contains.';
