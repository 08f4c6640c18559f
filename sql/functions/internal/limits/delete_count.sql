-- SPDX-License-Identifier: Apache-2.0
-- Deletes a count, without waiting for writers (agent.add_to_count): it ends first, so that later ones leave it alone;
-- the rows that earlier ones hold are deleted by a later call, and row -1 as the last one, by which the others are
-- found. A writer that inserts a row holds row -1, so none is left behind.
-- Returns: whether nothing is left.
-- Locks:   the rows of the count, skipping locked ones.
create or replace function agent.delete_count(p_account_id uuid, p_name text) returns boolean
language plpgsql volatile security invoker
set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $function$
begin
    perform
       from agent.account_counts c
      where c.account_id = p_account_id
        and c.name = p_name
        and c.shard = -1
        for update skip locked;
    if found then
        delete from agent.account_counts c
         where c.ctid = any (array(
                select x.ctid
                  from agent.account_counts x
                 where x.account_id = p_account_id
                   and x.name = p_name
                   and x.shard >= 0
                   for update skip locked));
        if exists (
                select
                  from agent.account_counts c
                 where c.account_id = p_account_id
                   and c.name = p_name
                   and c.shard >= 0)
        then
            update agent.account_counts c
               set counted_at = 'infinity'
             where c.account_id = p_account_id
               and c.name = p_name
               and c.shard = -1
               and c.counted_at < 'infinity';
            return false;
        end if;
        delete from agent.account_counts c
         where c.account_id = p_account_id
           and c.name = p_name
           and c.shard = -1;
    end if;
    return not exists (
        select from agent.account_counts c where c.account_id = p_account_id and c.name = p_name);
end
$function$;

comment on function agent.delete_count(uuid, text) is 'Deletes a count without waiting for writers.';
