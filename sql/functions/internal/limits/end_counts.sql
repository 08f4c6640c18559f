-- SPDX-License-Identifier: Apache-2.0
-- Deletes the counts of what no longer has a limit.
-- Returns: nothing.
-- Locks:   the counts, in the order of their keys.
create or replace function agent.end_counts() returns void
language plpgsql volatile security invoker
set search_path = '' set jit = off
as $function$
declare
    v_rows tid[];
begin
    v_rows := array(
        select c.ctid
          from agent.account_counts c
         where (c.account_id, c.name) in (
                select x.account_id, x.name
                  from agent.account_counts x
                 where x.shard = -1
                   and agent.find_limit(x.account_id, x.name) is null)
         order by c.account_id, c.name, c.shard
           for update);
    -- The rows do not move while they are locked.
    delete from agent.account_counts c
     where c.ctid = any (v_rows);
end
$function$;

comment on function agent.end_counts() is 'Deletes the counts of what no longer has a limit.';
