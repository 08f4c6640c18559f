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
    v_count integer;
begin
    delete from agent.store_items i
     where i.ctid = any (array(
            select e.ctid
              from (
                    -- Those that expire together are counted one after the other.
                    select l.ctid,
                           row_number() over w as pos,
                           sum(l.value_bytes + 2000) over w as bytes
                      from (
                            select x.ctid, x.expires_at, x.value_bytes
                              from agent.store_items x
                             where x.expires_at <= v_now
                             order by x.expires_at
                             limit 1000
                               for update skip locked
                           ) l
                    window w as (order by l.expires_at, l.ctid rows unbounded preceding)
                   ) e
             -- The first one whatever its length.
             where e.pos = 1
                or e.bytes <= agent.deletion_bytes()));
    get diagnostics v_count = row_count;
    return v_count;
end
$function$;

comment on function agent.sweep_store() is 'Deletes items of the store that have expired.';
