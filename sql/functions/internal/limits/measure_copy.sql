-- SPDX-License-Identifier: Apache-2.0
-- Gives the rows of a copy that has become a thread to the measure under way, which has passed over them so far: those
-- of tables in which it is beyond the thread count as found. So do all of the table in which it stands at the thread:
-- it continues after the thread.
-- p_bytes: of the tables in the order below.
-- Returns: nothing.
-- Locks:   the row of the measure.
create or replace function agent.measure_copy(
    p_deployment_id uuid,
    p_thread_id uuid,
    p_bytes bigint[]
) returns void
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $function$
declare
    c_tables constant text[] :=
        '{checkpoints,checkpoint_snapshots,checkpoint_writes,checkpoint_items,checkpoint_blobs,checkpoint_tasks}';
begin
    update agent.account_measures m
       set copied_bytes = m.copied_bytes + (
                select coalesce(sum(b.bytes), 0)
                  from unnest(c_tables, p_bytes) b (name, bytes)
                  join agent.list_exported_tables() t on t.name = b.name
                 where case
                           when p_deployment_id <> m.at_deployment_id
                           then p_deployment_id < m.at_deployment_id
                           when t.number <> m.table_number then t.number < m.table_number
                           -- The first column of the keys of these tables.
                           else p_thread_id <= m.last_key[1]::uuid
                       end),
           last_key = case
                when m.at_deployment_id = p_deployment_id and m.last_key[1] = p_thread_id::text
                then m.last_key[1 : 1]
                else m.last_key
            end
     where m.began_at is not null
       and m.account_id = (
            select d.account_id
              from agent.deployments d
             where d.deployment_id = p_deployment_id);
end
$function$;

comment on function agent.measure_copy(uuid, uuid, bigint[]) is
    'Gives the rows of a copy that has ended to the measure under way.';
