-- SPDX-License-Identifier: Apache-2.0
-- Buries workers of any host whose lease ended more than 5 seconds ago, and goes on with burials
-- that were not finished. Two sweepers do not wait for each other.
-- Returns: the runs released as agent.bury_worker, about 100 at most: call again while there are any.
-- Locks:   as bury_worker, for each of them.
create or replace function agent.sweep_workers()
returns table (run_id uuid, thread_id uuid, outcome text)
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
    v_now       timestamptz := agent.now();
    v_worker_id bigint;
    v_count     integer;
    v_released  integer := 0;
begin
    for v_worker_id in
        select w.worker_id
          from agent.workers w
         where (w.state <> 3 and w.lease_until < v_now - interval '5 seconds')
            or (w.state = 3 and exists (
                    select from agent.run_queue q
                     where q.worker_id = w.worker_id
                       and q.state = 2))
         order by w.worker_id
           for no key update skip locked
    loop
        return query
            select b.run_id, b.thread_id, b.outcome
              from agent.bury_worker(v_worker_id, true) b;
        get diagnostics v_count = row_count;
        v_released := v_released + v_count;
        exit when v_released >= 100;
    end loop;

    -- Nobody asks for the dead of last week.
    delete from agent.workers w
     where w.state = 3
       and w.dead_at < v_now - interval '7 days'
       and not exists (
            select from agent.run_queue q
             where q.worker_id = w.worker_id
               and q.state = 2);
end
$function$;

comment on function agent.sweep_workers() is 'Buries workers whose lease has ended.';
