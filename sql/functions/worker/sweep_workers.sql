-- SPDX-License-Identifier: Apache-2.0
-- Marks workers of any host as dead whose lease ended more than 5 seconds ago, and makes what they were
-- delivering due. Two sweepers do not wait for each other.
-- Returns: dead workers that still have runs, to be buried by the caller one by one.
-- Locks:   the workers that it marks, skipping locked ones, then rows of the outbox.
create or replace function agent.sweep_workers() returns setof bigint
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
    v_now       timestamptz := agent.now();
    v_worker_id bigint;
begin
    for v_worker_id in
        update agent.workers w
           set state = 3, dead_at = v_now
         where w.worker_id = any (array(
                select x.worker_id
                  from agent.workers x
                 where x.state <> 3
                   and x.lease_until < v_now - interval '5 seconds'
                 order by x.worker_id
                   for no key update skip locked))
        returning w.worker_id
    loop
        perform agent.release_webhooks(v_worker_id);
    end loop;

    -- Nobody asks for the dead of last week.
    delete from agent.workers w
     where w.state = 3
       and w.dead_at < v_now - interval '7 days'
       and not exists (
            select from agent.run_queue q
             where q.worker_id = w.worker_id);

    return query
        select w.worker_id
          from agent.workers w
         where w.state = 3
           and exists (
                select from agent.run_queue q
                 where q.worker_id = w.worker_id)
         order by w.worker_id;
end
$function$;

comment on function agent.sweep_workers() is
    'Marks workers dead whose lease has ended; names those that still have runs.';
