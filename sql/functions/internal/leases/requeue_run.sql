-- SPDX-License-Identifier: Apache-2.0
-- Makes a leased run ready again. After an uncounted loss and after the first counted one it is ready at once, after
-- the second counted loss in 5 seconds and after further ones, which a row with max_attempts above 3 has, in 25 seconds
-- (+-20 %, so that runs that were lost together are not retried together).
-- p_max_shared null: unchanged; -1: no limit, which is counted in quarantines_passed.
-- Returns: nothing.
-- Locks:   the caller holds the queue row.
create or replace function agent.requeue_run(
    p_row agent.run_queue,
    p_counted boolean,
    p_max_shared smallint
) returns void
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $function$
begin
    update agent.run_queue q
       set state = 'ready',
           worker_id = null,
           ready_seq = nextval('agent.run_ready_seq'),
           max_shared = nullif(coalesce(p_max_shared, q.max_shared), -1),
           quarantines_passed = q.quarantines_passed + case when p_max_shared = -1 then 1 else 0 end,
           attempts = q.attempts - case when p_counted then 0 else 1 end,
           not_before = case when p_counted and q.attempts > 1 then
               agent.now() + agent.jitter(power(5, least(q.attempts, 3) - 1) * interval '1 second')
           end
     where q.run_id = p_row.run_id
       and q.deployment_id is not distinct from p_row.deployment_id;
    perform agent.count_ended_runs(array[p_row], true);
end
$function$;

comment on function agent.requeue_run(agent.run_queue, boolean, smallint) is
    'Makes a leased run ready again.';
