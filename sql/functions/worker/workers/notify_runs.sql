-- SPDX-License-Identifier: Apache-2.0
-- Notifies all listening server processes of changed runs and threads. Call it in a transaction of its own,
-- after the commit of the change: a notifying transaction holds a lock of the whole cluster until its commit.
-- A payload is limited to 8000 bytes: 200 ids of 38. Ids alone: clients choose those of threads, so that a
-- waiter of another deployment may be woken, which then reads its own thread and finds nothing new.
-- p_ids:   UUIDs. One with a "!" after it may be of a run that has ended: a request that waits for the end of a
--          run needs no other notification.
-- Returns: nothing.
-- Locks:   none.
create or replace function agent.notify_runs(p_ids text[]) returns void
language plpgsql volatile security invoker set search_path = ''
as $function$
begin
    for v_from in 1 .. coalesce(cardinality(p_ids), 0) by 200
    loop
        perform pg_notify('agent_runs', array_to_string(p_ids[v_from : v_from + 199], ' '));
    end loop;
end
$function$;

comment on function agent.notify_runs(text[]) is 'Sends ids of runs and threads on channel agent_runs.';
