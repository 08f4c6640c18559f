-- SPDX-License-Identifier: Apache-2.0
-- Marks workers of any host dead whose lease ended more than p_late_sec seconds ago, and makes the webhooks that they
-- were delivering due. Until then a late renewal succeeds. Concurrent callers do not wait for each other.
-- Deletes workers that died a week ago and have no runs.
-- Returns: dead workers that still have runs; the caller calls agent.mark_worker_dead for each.
-- Locks:   the workers that it marks, skipping locked ones, then rows of the outbox, then the rows that it deletes.
create or replace function agent.sweep_workers(p_late_sec integer) returns setof bigint
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
    v_now       timestamptz := agent.now();
    v_worker_id bigint;
begin
    for v_worker_id in
        update agent.workers w
           set state = 'dead', dead_at = v_now
         where w.worker_id = any (array(
                select x.worker_id
                  from agent.workers x
                 where x.state <> 'dead'
                   and x.lease_until < v_now - p_late_sec * interval '1 second'
                 order by x.worker_id
                   for no key update skip locked))
        returning w.worker_id
    loop
        perform agent.release_webhooks(v_worker_id);
    end loop;

    -- Dead workers are kept for a week, so that worker_id in a log can be looked up.
    delete from agent.workers w
     where w.state = 'dead'
       and w.dead_at < v_now - interval '7 days'
       and not exists (
            select from agent.run_queue q
             where q.worker_id = w.worker_id);

    return query
        select w.worker_id
          from agent.workers w
         where w.state = 'dead'
           and exists (
                select from agent.run_queue q
                 where q.worker_id = w.worker_id)
         order by w.worker_id;
end
$function$;

comment on function agent.sweep_workers(integer) is
    'Marks workers dead whose lease has ended; returns those that still have runs.';
