-- SPDX-License-Identifier: Apache-2.0
-- GET /threads/{thread_id}/runs/{run_id}/join, called once per wake-up: reads only.
-- Returns: waiting while the run is not final; run_not_found, also after a rollback; ok with
--          - {"__error__": {error, message}} when the run failed;
--          - else the values that it left, with __interrupt__ when it stopped before its end, and with
--            __feedback__ when it has feedback addresses; for a run that saved no checkpoint the values of
--            the thread; null for none, and when agent.prune_thread has deleted them.
--          cursor: as in agent.get_state.
-- Locks:   none.
create or replace function agent.join_run(
    p_deployment_id uuid,
    p_thread_id uuid,
    p_run_id uuid,
    p_max_bytes bigint default null,
    out code text,
    out body text,
    out cursor text
)
language plpgsql stable security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_hashjoin = off
set plan_cache_mode = force_generic_plan
as $function$
declare
    v_run agent.runs;
begin
    select r.* into v_run
      from agent.find_run(p_deployment_id, p_thread_id, p_run_id) r;
    if not found then
        code := 'run_not_found';
        return;
    elsif v_run.finished_at is null then
        code := 'waiting';
        return;
    end if;

    code := 'ok';
    if v_run.status in ('error', 'timeout') then
        body := json_build_object('__error__', v_run.error);
        return;
    end if;
    select r.content, r.cursor into body, cursor from agent.compose_result(v_run, p_max_bytes) r;
    -- A run whose checkpoints were deleted has none: the values of the thread are those of another run.
    if v_run.last_checkpoint_id is null then
        select r.content, r.cursor into body, cursor
          from agent.threads t
         cross join lateral agent.compose_result(v_run, p_max_bytes, t.head_checkpoint_id) r
         where t.deployment_id = p_deployment_id
           and t.thread_id = p_thread_id
           and t.head_checkpoint_id is not null;
    end if;
    if v_run.status = 'success' and v_run.feedback is not null and body is not null then
        body := agent.add_to_values(body, '__feedback__', v_run.feedback);
    end if;
    body := coalesce(body, 'null');
end
$function$;

comment on function agent.join_run(uuid, uuid, uuid, bigint) is
    'GET /threads/{thread_id}/runs/{run_id}/join.';
