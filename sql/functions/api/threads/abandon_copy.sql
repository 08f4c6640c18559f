-- SPDX-License-Identifier: Apache-2.0
-- Gives up a copy of a thread that is not continued: its key has ended, its client has gone, its server stops, or a
-- part of the thread was deleted.
-- agent.sweep_copies deletes it at its next turns, instead of two minutes later. Until its rows are gone it counts as a
-- thread: clients that begin copies and disconnect would store far more than their limit otherwise.
-- Returns: ok, whether or not there is one.
-- Locks:   the row of the copy.
create or replace function agent.abandon_copy(
    p_deployment_id uuid,
    p_copy_id uuid,
    out code text,
    out body text
)
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $function$
declare
    v_now timestamptz := agent.now();
begin
    code := 'ok';
    update agent.thread_copies c
       set expires_at = v_now
     where c.deployment_id = p_deployment_id
       and c.thread_id = p_copy_id
       and c.expires_at > v_now;
end
$function$;

comment on function agent.abandon_copy(uuid, uuid) is 'Gives up a copy of a thread that is not continued.';
