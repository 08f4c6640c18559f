-- SPDX-License-Identifier: Apache-2.0
-- Deletes the counts of what no longer has a limit.
-- Returns: nothing.
-- Locks:   the table of the counts: while it waits it holds no row that writers need (agent.add_to_count).
create or replace function agent.end_counts() returns void
language plpgsql volatile security invoker
set search_path = '' set jit = off
as $function$
begin
    lock table agent.account_counts in exclusive mode;
    delete from agent.account_counts c
     where agent.find_limit(c.account_id, c.name) is null;
end
$function$;

comment on function agent.end_counts() is 'Deletes the counts of what no longer has a limit.';
