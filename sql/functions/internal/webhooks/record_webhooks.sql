-- SPDX-License-Identifier: Apache-2.0
-- Inserts the webhooks of ended runs into the outbox: the run record after the end, the times of start and
-- end, and the last values. Values are left out for a run on a temporary thread and replaced by
-- "values_omitted" above 1 MiB. A run that was rolled back has status interrupted and "rolled_back": true.
-- Call it when the records are final, or before a rollback deletes them, and before the queue rows are deleted.
-- Returns: nothing.
-- Locks:   the new rows, and rows of the counts of accounts with a limit.
create or replace function agent.record_webhooks(
    p_ends agent.run_end[],
    p_rolled_back boolean
) returns void
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_hashjoin = off
set enable_mergejoin = off set plan_cache_mode = force_generic_plan
as $function$
declare
    c_values_bytes constant integer := 1048576;
    v_now        timestamptz := agent.now();
    v_run        agent.runs;
    v_checkpoint agent.checkpoints;
    v_body       json;
begin
    for v_run in
        select r.*
          from unnest(p_ends) e
         cross join lateral (
                select x.*
                  from agent.runs x
                 where x.run_id = e.run_id
                   and x.deployment_id is not distinct from e.deployment_id
                 limit 1
               ) r
         where r.webhook is not null
    loop
        if p_rolled_back then
            v_run.status := 'interrupted';
            v_run.updated_at := v_now;
            v_run.finished_at := v_now;
            select e.cancel_reason into v_run.cancel_reason
              from unnest(p_ends) e
             where e.run_id = v_run.run_id;
            select q.started_at into v_run.started_at
              from agent.run_queue q
             where q.run_id = v_run.run_id
               and q.deployment_id is not distinct from v_run.deployment_id;
        end if;
        v_body := agent.concat_objects(
            agent.render_run(v_run),
            json_build_object(
                'run_started_at', agent.render_time(v_run.started_at),
                'run_ended_at', agent.render_time(v_run.finished_at)));
        if p_rolled_back then
            v_body := agent.concat_objects(v_body, '{"rolled_back": true, "values": null}');
        elsif not v_run.temporary then
            select c.* into v_checkpoint
              from agent.checkpoints c
             where c.deployment_id = v_run.deployment_id
               and c.thread_id = v_run.thread_id
               and c.checkpoint_ns = ''
               and c.checkpoint_id = v_run.last_checkpoint_id;
            v_checkpoint := (agent.apply_report(v_checkpoint, false)).shown;
            -- Each attempt sends the whole body: a small request must not cause much traffic.
            v_body := agent.concat_objects(v_body, case
                when coalesce(v_checkpoint.state_bytes, (
                    select sum(c.bytes)
                      from unnest(v_checkpoint.channels) c)) > c_values_bytes
                    then '{"values": null, "values_omitted": true}'
                else json_build_object('values', (
                    select v.content::json
                      from agent.compose_values(
                               v_checkpoint.deployment_id, v_checkpoint.thread_id, v_checkpoint.channels) v))
                end);
        end if;
        insert into agent.webhook_outbox (
            deployment_id, run_id, thread_id, url, body, body_bytes, due_at, created_at)
        values (
            v_run.deployment_id, v_run.run_id, v_run.thread_id, v_run.webhook, v_body::text,
            octet_length(v_body::text), v_now, v_now);
        if exists (select from agent.account_counts) then
            perform agent.change_count(v_run.deployment_id, 'webhooks', 1);
        end if;
    end loop;
end
$function$;

comment on function agent.record_webhooks(agent.run_end[], boolean) is
    'Inserts the webhooks of ended runs into the outbox.';
