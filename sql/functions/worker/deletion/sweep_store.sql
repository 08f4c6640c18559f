-- SPDX-License-Identifier: Apache-2.0
-- Deletes items of the store that have expired, the first ones first.
-- Returns: number of items deleted: call again while it is not 0.
-- Locks:   the items; those that are locked are passed over.
create or replace function agent.sweep_store() returns integer
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $function$
declare
    v_now   timestamptz := agent.now();
    v_rows  tid[];
    v_bytes bigint[];
    v_count integer;
begin
    -- In the order of the rows.
    select array_agg(l.ctid), array_agg(l.value_bytes) into v_rows, v_bytes
      from (
            select x.ctid, x.expires_at, x.value_bytes
              from agent.store_items x
             where x.expires_at <= v_now
             order by x.expires_at
             limit 1000
               for update skip locked
           ) l;
    delete from agent.store_items i
     where i.ctid = any (agent.fit_deletion(v_rows, v_bytes));
    get diagnostics v_count = row_count;
    return v_count;
end
$function$;

comment on function agent.sweep_store() is 'Deletes items of the store that have expired.';
