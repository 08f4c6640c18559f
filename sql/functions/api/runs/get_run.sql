-- SPDX-License-Identifier: Apache-2.0
-- GET /threads/{thread_id}/runs/{run_id}.
-- Returns: ok with the run record; run_not_found, also when the run belongs to another thread. body null: its values
--          take more than p_max_bytes (null = no limit) and were not read.
-- Locks:   none.
create or replace function agent.get_run(
    p_deployment_id uuid,
    p_thread_id uuid,
    p_run_id uuid,
    p_max_bytes bigint default null,
    out code text,
    out body text
)
language plpgsql stable security invoker
set search_path = '' set jit = off set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $function$
begin
    select 'ok', case when agent.stored_run_bytes(r) <= p_max_bytes is not false then agent.render_run(r) end
      into code, body
      from agent.find_run(p_deployment_id, p_thread_id, p_run_id) r;
    if not found then
        code := 'run_not_found';
    end if;
end
$function$;

comment on function agent.get_run(uuid, uuid, uuid, bigint) is 'GET /threads/{thread_id}/runs/{run_id}.';
