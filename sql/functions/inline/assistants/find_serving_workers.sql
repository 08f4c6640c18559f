-- SPDX-License-Identifier: Apache-2.0
-- The workers for whose graphs runs are accepted: those that are live, and those whose lease ended less than an hour
-- ago, so that runs are accepted while their host restarts, unless that host has registered a newer one.
-- Returns: rows of agent.workers.
-- Locks:   none.
create or replace function agent.find_serving_workers() returns setof agent.workers
language sql stable parallel safe
-- No SET clause: it would keep the body from being inlined into FROM.
as $function$
    select w.*
      from agent.workers w
     where w.state = 'live'
        or w.lease_until > agent.now() - interval '1 hour'
           and not exists (
                select from agent.workers n
                 where n.node_name = w.node_name
                   and n.worker_id > w.worker_id)
$function$;

comment on function agent.find_serving_workers() is 'The workers for whose graphs runs are accepted.';
