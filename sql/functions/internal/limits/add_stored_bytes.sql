-- SPDX-License-Identifier: Apache-2.0
-- Adds the bytes that a piece of a copy has stored to the measure of the deployment's account, if it has one: a short
-- request would otherwise store far more than the limit before the next measure. Those of what a measure that is under
-- way has passed are added to its result too: it finds the others itself. The copy notes them, so that they can be
-- taken away when it is deleted. p_bytes: of the tables in the order below.
-- Returns: nothing.
-- Locks:   the row of the measure: call it last. agent.measure_accounts holds it for 50 ms. The caller holds the row of
--          the copy.
create or replace function agent.add_stored_bytes(p_copy agent.thread_copies, p_bytes bigint[]) returns void
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $function$
declare
    c_tables constant text[] := '{checkpoints,checkpoint_snapshots,checkpoint_items,checkpoint_blobs}';
begin
    update agent.thread_copies c
       set stored_bytes = array(
            select coalesce(b.old, 0) + b.new
              from unnest(c.stored_bytes, p_bytes) with ordinality b (old, new, number)
             order by b.number)
     where c.deployment_id = p_copy.deployment_id
       and c.thread_id = p_copy.thread_id;
    update agent.account_measures m
       set bytes = greatest(m.bytes + (select coalesce(sum(b.bytes), 0) from unnest(p_bytes) b (bytes)), 0),
           copied_bytes = m.copied_bytes + (
                select coalesce(sum(b.bytes) filter (where case
                           when m.began_at is null then false
                           when p_copy.deployment_id <> m.at_deployment_id
                           then p_copy.deployment_id < m.at_deployment_id
                           when t.number <> m.table_number then t.number < m.table_number
                           -- The first column of the keys of these tables.
                           else p_copy.thread_id <= m.last_key[1]::uuid
                       end), 0)
                  from unnest(c_tables, p_bytes) b (name, bytes)
                  join agent.list_exported_tables() t on t.name = b.name)
     where m.account_id = (
            select d.account_id
              from agent.deployments d
             where d.deployment_id = p_copy.deployment_id);
end
$function$;

comment on function agent.add_stored_bytes(agent.thread_copies, bigint[]) is
    'Adds what a copy has stored to the measure of an account.';
