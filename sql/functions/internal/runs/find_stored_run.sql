-- SPDX-License-Identifier: Apache-2.0
-- The run that an earlier request with the same idempotency key created. Requests with one key are
-- serialized here, so that the second one sees the run of the first. p_thread_id null: the request named no
-- thread. A run of a thread whose deletion has begun is not returned: the request is refused for that thread.
-- Returns: ok with the stored run's record; idempotency_mismatch when the stored request differs; code null
--          when the key is new.
-- Locks:   the key (advisory).
create or replace function agent.find_stored_run(
    p_deployment_id uuid,
    p_thread_id uuid,
    p_idempotency_key text,
    p_request_hash text,
    out code text,
    out body text
)
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $function$
begin
    perform pg_advisory_xact_lock(hashtextextended(p_deployment_id::text || p_idempotency_key, 0));
    select case
               when r.thread_id = coalesce(p_thread_id, r.thread_id)
                and r.request_hash is not distinct from p_request_hash
               then 'ok' else 'idempotency_mismatch'
           end,
           agent.render_run(r)
      into code, body
      from agent.runs r
     where r.deployment_id = p_deployment_id
       and r.idempotency_key = p_idempotency_key
       and not exists (
            select from agent.threads t
             where t.deployment_id = p_deployment_id
               and t.thread_id = p_thread_id
               and t.thread_id = r.thread_id
               and t.is_deleted);
    if code = 'idempotency_mismatch' then
        body := 'The idempotency key was used for another request.';
    end if;
end
$function$;

comment on function agent.find_stored_run(uuid, uuid, text, text) is
    'The run that a request with this idempotency key created.';
