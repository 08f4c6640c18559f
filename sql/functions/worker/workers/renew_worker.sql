-- SPDX-License-Identifier: Apache-2.0
-- The heartbeat of a supervisor. A worker whose lease ended but that was not marked dead continues: none of
-- its runs was released.
-- Returns: ok; fenced when it is marked dead: it must stop its runners and register again.
-- Locks:   its worker row.
create or replace function agent.renew_worker(
    p_worker_id bigint,
    p_lease_sec integer,
    p_draining boolean
) returns text
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $function$
begin
    update agent.workers w
       set lease_until = agent.now() + p_lease_sec * interval '1 second',
           state = case when p_draining then 'draining' else w.state end
     where w.worker_id = p_worker_id
       and w.state <> 'dead';
    return case when found then 'ok' else 'fenced' end;
end
$function$;

comment on function agent.renew_worker(bigint, integer, boolean) is
    'Extends the lease of a supervisor.';
