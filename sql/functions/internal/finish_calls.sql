-- SPDX-License-Identifier: Apache-2.0
-- Gives calls that end their results. A call has written what it saved as a checkpoint, and all of it or nothing: what
-- a graph refuses is undone, and a call that was saved has succeeded, also when its end did not arrive.
-- p_worker_id: as in agent.finalize_runs. p_calls: their queue rows, which the caller has deleted. p_ends: the ends, of
-- runs too.
-- Returns: p_ends, each end of a call with the status that its thread gets: error when it had that before a failure.
-- Locks:   the caller holds the threads; takes the records of the calls.
create or replace function agent.finish_calls(
    p_worker_id bigint,
    p_calls agent.run_queue[],
    p_ends agent.run_end[]
) returns agent.run_end[]
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_hashjoin = off
set enable_mergejoin = off set plan_cache_mode = force_generic_plan
as $function$
declare
    v_ends    agent.run_end[] := p_ends;
    v_numbers jsonb;
    v_number  integer;
    v_call    agent.run_queue;
    v_end     agent.run_end;
    v_head    uuid;
    v_saved   boolean;
    v_word    text;
    v_code    text;
    v_body    text;
    v_config  jsonb;
    v_before  text;
begin
    -- Found in a map: a search for each call would be quadratic.
    select jsonb_object_agg(e.deployment_id || '/' || e.run_id, e.number) into v_numbers
      from unnest(p_ends) with ordinality
           as e (deployment_id, thread_id, run_id, status, error, last_event_seq, is_failure, number);
    foreach v_call in array p_calls
    loop
        v_number := (v_numbers ->> (v_call.deployment_id || '/' || v_call.run_id))::integer;
        v_end := p_ends[v_number];
        select t.head_checkpoint_id, t.head_run_id is not distinct from v_call.run_id into v_head, v_saved
          from agent.threads t
         where t.deployment_id = v_call.deployment_id
           and t.thread_id = v_call.thread_id;
        v_word := case when v_end.status in ('error', 'timeout') then coalesce(v_end.error ->> 'error', 'error') end;

        if v_saved and (v_end.status = 'success' or v_word is not null and v_end.is_failure) then
            v_code := 'ok';
            v_body := json_build_object(
                'checkpoint', agent.render_checkpoint(v_call.thread_id, v_head),
                'configurable', json_build_object(
                    'thread_id', v_call.thread_id, 'checkpoint_ns', '', 'checkpoint_id', v_head),
                'checkpoint_id', v_head);
        elsif v_word is null then
            v_code := 'call_failed';
            v_body := 'The graph ended the update without a result.';
        else
            v_code := case
                when not v_end.is_failure then 'update_refused'
                when v_word in ('call_timeout', 'no_runner') then v_word
                else 'call_failed'
            end;
            -- A runner chooses both texts.
            v_body := left(coalesce(v_end.error ->> 'message', ''), 2000);
            if v_code = 'update_refused' then
                v_body := left(v_word, 128) || ': ' || v_body;
            end if;
        end if;

        update agent.calls c
           set code = v_code,
               body = v_body,
               arguments = '{}',
               epoch = v_call.epoch,
               worker_id = p_worker_id,
               finished_at = agent.now()
         where c.call_id = v_call.run_id
           and c.deployment_id is not distinct from v_call.deployment_id
        returning c.config, c.thread_status into v_config, v_before;
        if v_code = 'ok' then
            update agent.checkpoints c
               set metadata = agent.concat_objects(
                       c.metadata,
                       (
                           (v_config -> 'metadata')
                           - array['source', 'step', 'writes', 'parents', 'run_id', 'thread_id']
                       )::json)
             where c.deployment_id = v_call.deployment_id
               and c.thread_id = v_call.thread_id
               and c.checkpoint_ns = ''
               and c.checkpoint_id = v_head;
        elsif v_saved then
            perform agent.discard_run(
                v_call.deployment_id, v_call.thread_id, v_call.run_id,
                agent.deletion_bytes() / cardinality(p_calls));
            perform agent.move_head(v_call.deployment_id, v_call.thread_id, v_call.base_checkpoint_id);
        end if;
        v_end.status := case when v_code <> 'ok' and v_before = 'error' then 'error' else 'success' end;
        v_ends[v_number] := v_end;
    end loop;
    return v_ends;
end
$function$;

comment on function agent.finish_calls(bigint, agent.run_queue[], agent.run_end[]) is
    'Gives calls that end their results.';
