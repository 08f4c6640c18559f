-- SPDX-License-Identifier: Apache-2.0
-- DELETE /threads/{thread_id}, with everything that belongs to it but usage. The worker of an executing run
-- finds no queue row and is fenced. Events beyond agent.deletion_bytes() are deleted later, by
-- agent.sweep_events; without their runs they cannot be read.
-- Returns: ok, changed: the thread and its unfinished runs; thread_not_found.
-- Locks:   the thread, then its queue rows, then its records.
create or replace function agent.delete_thread(
    p_deployment_id uuid,
    p_thread_id uuid,
    out code text,
    out body text,
    out changed text
)
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set enable_sort = off set plan_cache_mode = force_generic_plan
as $function$
declare
    v_bucket date;
    v_run_id uuid;
    v_final  boolean;
    v_bytes  bigint := agent.deletion_bytes();
begin
    select t.active_run_id into v_run_id
      from agent.threads t
     where t.deployment_id = p_deployment_id
       and t.thread_id = p_thread_id
       for update;
    if not found then
        code := 'thread_not_found';
        return;
    end if;

    delete from agent.run_queue q
     where q.run_id = v_run_id
       and q.deployment_id is not distinct from p_deployment_id;
    delete from agent.run_queue q
     where q.ctid = any (array(
            select b.ctid
              from agent.run_queue b
             where b.deployment_id = p_deployment_id
               and b.thread_id = p_thread_id
               and b.state = 'blocked'
             order by b.thread_seq));

    -- Run by run: a join could read the events of the whole day.
    changed := p_thread_id;
    for v_bucket, v_run_id, v_final in
        select r.events_bucket, r.run_id, r.finished_at is not null
          from agent.runs r
         where r.deployment_id = p_deployment_id
           and r.thread_id = p_thread_id
         order by r.thread_seq
    loop
        v_bytes := agent.delete_events(p_deployment_id, v_bucket, v_run_id, v_bytes);
        if not v_final then
            changed := changed || ' ' || v_run_id;
        end if;
    end loop;

    delete from agent.runs r
     where r.ctid = any (array(
            select x.ctid
              from agent.runs x
             where x.deployment_id = p_deployment_id
               and x.thread_id = p_thread_id
             order by x.thread_seq));
    delete from agent.checkpoints c
     where c.deployment_id = p_deployment_id
       and c.thread_id = p_thread_id;
    delete from agent.checkpoint_blobs b
     where b.deployment_id = p_deployment_id
       and b.thread_id = p_thread_id;
    delete from agent.blob_sweeps b
     where b.deployment_id = p_deployment_id
       and b.thread_id = p_thread_id;
    delete from agent.thread_expiries e
     where e.deployment_id = p_deployment_id
       and e.thread_id = p_thread_id;
    delete from agent.threads t
     where t.deployment_id = p_deployment_id
       and t.thread_id = p_thread_id;
    code := 'ok';
end
$function$;

comment on function agent.delete_thread(uuid, uuid) is 'DELETE /threads/{thread_id}.';
