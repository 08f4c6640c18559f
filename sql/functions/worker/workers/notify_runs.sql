-- SPDX-License-Identifier: Apache-2.0
-- Notifies all listening server processes of changed runs and threads. Call it in a transaction of its own,
-- after the commit of the change: a notifying transaction holds a lock of the whole cluster until its commit.
-- A payload is limited to 8000 bytes: 200 ids of 38. Ids alone: clients choose those of threads, so that a
-- waiter of another deployment may be woken, which then reads its own thread and finds nothing new.
-- p_ids:   the runs and threads.
-- p_ended: of each id, whether the run may have ended (null: it may). Such an id has a "!" after it: a request
--          that waits for the end of a run needs no other notification.
-- Returns: nothing.
-- Locks:   none.
create or replace function agent.notify_runs(p_ids uuid[], p_ended boolean[]) returns void
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
    v_marked constant text[] := array(select i.id || case when i.ended is false then '' else '!' end
                                      from unnest(p_ids, p_ended) i (id, ended));
begin
    for v_from in 1 .. coalesce(cardinality(v_marked), 0) by 200
    loop
        perform pg_notify('agent_runs', array_to_string(v_marked[v_from : v_from + 199], ' '));
    end loop;
end
$function$;

comment on function agent.notify_runs(uuid[], boolean[]) is 'Sends ids of runs and threads on channel agent_runs.';
