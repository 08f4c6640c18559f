-- SPDX-License-Identifier: Apache-2.0
-- POST /threads. p_if_exists: raise, or do_nothing, which returns the existing thread.
-- p_ttl: how long it is kept without activity, if the request does not say so; null: for ever.
-- Returns: ok with the thread record; thread_exists when the id is taken, by a thread whose
--          deletion has begun too, and p_if_exists is raise or the thread cannot be returned; limit_exceeded.
-- Locks:   the new rows, then one row of the count of an account with a limit; none on an existing thread.
create or replace function agent.create_thread(
    p_deployment_id uuid,
    p_thread_id uuid,
    p_if_exists text,
    p_request json,
    p_ttl interval default null,
    out code text,
    out body text
)
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $function$
declare
    v_now        timestamptz := agent.now();
    v_ttl        interval := agent.read_ttl(p_request -> 'ttl', p_ttl);
    v_has_limits boolean := exists (select from agent.account_limits);
begin
    if v_has_limits and not exists (
        select from agent.threads t
         where t.deployment_id = p_deployment_id
           and t.thread_id = p_thread_id)
    then
        body := coalesce(
            agent.check_stored_bytes(p_deployment_id), agent.check_limit(p_deployment_id, 'threads', 1));
        if body is not null then
            code := 'limit_exceeded';
            return;
        end if;
    end if;
    insert into agent.threads as t (deployment_id, thread_id, metadata, ttl, created_at, updated_at)
    values (
        p_deployment_id, p_thread_id,
        -- A JSON null counts as absent.
        coalesce(nullif((p_request -> 'metadata')::jsonb, 'null'), '{}'), v_ttl, v_now, v_now)
        on conflict (deployment_id, thread_id) do nothing
    returning agent.render_thread(t, null, '{}') into body;

    if found then
        code := 'ok';
        if v_ttl is not null then
            insert into agent.thread_expiries (deployment_id, thread_id, expires_at)
            values (p_deployment_id, p_thread_id, v_now + v_ttl);
        end if;
        if exists (select from agent.account_counts) then
            perform agent.change_count(p_deployment_id, 'threads', 1);
        end if;
    elsif p_if_exists = 'do_nothing' then
        select g.code, g.body into code, body
          from agent.get_thread(p_deployment_id, p_thread_id) g;
    end if;
    -- One whose deletion has begun is not returned.
    if code is distinct from 'ok' then
        code := 'thread_exists';
        body := 'Thread already exists';
    end if;
end
$function$;

comment on function agent.create_thread(uuid, uuid, text, json, interval) is 'POST /threads.';
