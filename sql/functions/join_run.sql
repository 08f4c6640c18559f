-- SPDX-License-Identifier: Apache-2.0
-- GET /threads/{thread_id}/runs/{run_id}/join, asked once per wake-up: reads only.
-- Returns: waiting while the run is not final; ok with the values of its last checkpoint (null for
--          none), with __interrupt__ added when it stopped at a breakpoint, or with
--          {"__error__": {error, message}} when it failed; run_not_found, also after a rollback.
-- Locks:   none.
create or replace function agent.join_run(
    p_account_id uuid,
    p_thread_id uuid,
    p_run_id uuid,
    out code text,
    out body text
)
language plpgsql stable security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_hashjoin = off
set plan_cache_mode = force_generic_plan
as $function$
declare
    v_run        agent.runs;
    v_next       json;
    v_interrupts json;
begin
    select r.* into v_run
      from agent.runs r
     where r.run_id = p_run_id
       and r.account_id is not distinct from p_account_id
       and r.thread_id is not distinct from p_thread_id;
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
    select v.content, c.next, i.flat
      into body, v_next, v_interrupts
      from agent.checkpoints c
     cross join lateral agent.compose_values(c.account_id, c.thread_id, c.channels) v
     cross join lateral agent.render_interrupts(c.tasks) i
     where c.account_id = p_account_id
       and c.thread_id = p_thread_id
       and c.checkpoint_id = v_run.last_checkpoint_id;
    if json_array_length(v_next) > 0 and not v_run.cancelled then
        body := agent.concat_objects(body::json, json_build_object('__interrupt__', v_interrupts));
    end if;
    body := coalesce(body, 'null');
end
$function$;

comment on function agent.join_run(uuid, uuid, uuid) is
    'GET /threads/{thread_id}/runs/{run_id}/join.';
