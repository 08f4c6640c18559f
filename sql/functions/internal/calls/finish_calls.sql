-- SPDX-License-Identifier: Apache-2.0
-- Sets the results of calls that end. An update is saved as a whole or not at all: an update that the graph refuses is
-- undone, and so is an update of several supersteps whose runner is lost. A saved update of a single superstep has
-- succeeded, even if its end did not arrive. When a call that was to create a thread fails, the thread is deleted,
-- unless runs wait on it.
-- p_worker_id: as in agent.finalize_runs. p_calls: their queue rows, which the caller has deleted. p_ends: the ends, of
-- runs too.
-- Returns: p_ends, where the end of a call has the status that its thread gets: error if the call failed and the thread
--          had this status before.
-- Locks:   the caller holds the threads; takes the records of the calls.
create or replace function agent.finish_calls(
    p_worker_id bigint,
    p_calls agent.run_queue[],
    p_ends agent.run_end[]
) returns agent.run_end[]
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_hashjoin = off
set enable_mergejoin = off set enable_sort = off set plan_cache_mode = force_generic_plan
as $function$
declare
    v_ends    agent.run_end[] := p_ends;
    v_numbers jsonb;
    v_number  integer;
    v_call    agent.run_queue;
    v_end     agent.run_end;
    v_head    uuid;
    v_ns      text;
    v_code    text;
    v_body    text;
    v_config  jsonb;
    v_before  text;
begin
    -- Found in a map: a search for each call would be quadratic.
    select jsonb_object_agg(e.deployment_id || '/' || e.run_id, e.number) into v_numbers
      from unnest(p_ends) with ordinality
           as e (
               deployment_id, thread_id, run_id, status, error, last_event_seq, is_failure, value, cancel_reason,
               number);
    foreach v_call in array p_calls
    loop
        v_number := (v_numbers ->> (v_call.deployment_id || '/' || v_call.run_id))::integer;
        v_end := p_ends[v_number];
        v_head := agent.find_call_checkpoint(v_call);
        select c.checkpoint_ns, r.code, r.body into v_ns, v_code, v_body
          from agent.calls c
          left join lateral agent.find_checkpoint(
                v_call.deployment_id, v_call.thread_id, c.checkpoint_ns, v_head) k on true
         cross join lateral agent.choose_call_result(
                v_call, v_end,
                agent.render_checkpoint(
                    v_call.thread_id, v_head, c.checkpoint_ns,
                    case when c.checkpoint_ns <> '' then
                        agent.find_parents(c.checkpoint_ns, k.metadata) || jsonb_build_object(c.checkpoint_ns, v_head)
                    end),
                agent.is_saved_update(v_call), c.arguments ->> 'what') r
         where c.call_id = v_call.run_id
           and c.deployment_id is not distinct from v_call.deployment_id;

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
        if v_code = 'ok' and v_head is not null then
            update agent.checkpoints c
               set metadata = agent.concat_objects(
                       c.metadata,
                       (
                           (v_config -> 'metadata')
                           - array['source', 'step', 'writes', 'parents', 'run_id', 'thread_id']
                       )::json)
             -- Conditions that match only one index, as in agent.find_run_checkpoints.
             where c.run_id = v_call.run_id
               and uuid_hash_extended(c.thread_id, 0) = uuid_hash_extended(v_call.thread_id, 0)
               and c.deployment_id is not distinct from v_call.deployment_id
               and c.thread_id is not distinct from v_call.thread_id;
        elsif v_head is not null or v_ns <> '' then
            -- Of a subgraph also what its library put alone: the last of a namespace would be continued.
            perform agent.discard_run(
                v_call.deployment_id, v_call.thread_id, v_call.run_id,
                agent.deletion_bytes() / cardinality(p_calls));
            if exists (
                select from agent.threads t
                 where t.deployment_id = v_call.deployment_id
                   and t.thread_id = v_call.thread_id
                   and t.head_run_id = v_call.run_id)
            then
                perform agent.move_head(v_call.deployment_id, v_call.thread_id, v_call.base_checkpoint_id);
            end if;
        end if;
        if v_code <> 'ok' and v_call.op = 'update' and v_before is null and not exists (
            select
              from (
                    select q.run_id
                      from agent.run_queue q
                     where q.deployment_id = v_call.deployment_id
                       and q.thread_id = v_call.thread_id
                       and q.state = 'blocked'
                     order by q.thread_seq
                     limit 1
                   ) b)
        then
            perform agent.delete_thread(v_call.deployment_id, v_call.thread_id);
        end if;
        v_end.status := case when v_code <> 'ok' and v_before = 'error' then 'error' else 'success' end;
        v_ends[v_number] := v_end;
    end loop;
    return v_ends;
end
$function$;

comment on function agent.finish_calls(bigint, agent.run_queue[], agent.run_end[]) is
    'Gives calls that end their results.';
