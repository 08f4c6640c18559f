-- SPDX-License-Identifier: Apache-2.0
-- Inserts checkpoints of leased runs and moves the heads of their threads. A checkpoint that exists already
-- changes nothing.
-- Returns: nothing.
-- Locks:   the caller holds the threads and the queue rows.
create or replace function agent.save_checkpoints(
    p_worker_id bigint,
    p_checkpoints agent.batch_checkpoint[]
) returns void
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_hashjoin = off
set enable_mergejoin = off set plan_cache_mode = force_generic_plan
as $function$
declare
    v_now timestamptz := agent.now();
begin
    insert into agent.checkpoint_blobs (deployment_id, thread_id, digest, content)
    select q.deployment_id, q.thread_id, b.digest, b.content
      from unnest(p_checkpoints) i
     cross join lateral agent.find_lease(p_worker_id, i.deployment_id, i.run_id, i.epoch) q
     cross join lateral unnest(i.channels) c
     cross join lateral unnest(c.digests, c.contents) b (digest, content)
        on conflict (deployment_id, thread_id, digest) do nothing;

    with saved as (
        insert into agent.checkpoints as k (
            deployment_id, thread_id, checkpoint_id, parent_checkpoint_id, run_id, channels, next, tasks,
            metadata, opaque, state_bytes, created_at)
        select q.deployment_id, q.thread_id, i.checkpoint_id, i.parent_checkpoint_id, q.run_id,
               array(
                   select row(c.name, c.is_list, c.digests)::agent.channel_value
                     from unnest(i.channels) c),
               i.next, i.tasks, i.metadata, i.opaque,
               (
                   select coalesce(sum(octet_length(x.content) + 1), 0)
                     from unnest(i.channels) c
                    cross join lateral unnest(c.contents) x (content)
               ),
               v_now
          from unnest(p_checkpoints) i
         cross join lateral agent.find_lease(p_worker_id, i.deployment_id, i.run_id, i.epoch) q
            on conflict (deployment_id, thread_id, checkpoint_id) do nothing
        returning k.deployment_id, k.thread_id, k.checkpoint_id, k.run_id, k.next
    )
    update agent.threads t
       set head_checkpoint_id = h.checkpoint_id,
           head_run_id = h.run_id,
           head_has_next = json_array_length(h.next) > 0,
           state_updated_at = v_now,
           updated_at = v_now
      from (
            -- The ids of one run's checkpoints are ordered by time.
            select distinct on (s.deployment_id, s.thread_id)
                   s.checkpoint_id, s.run_id, s.next, x.ctid as row_id
              from saved s
             cross join lateral (
                    select y.ctid
                      from agent.threads y
                     where y.deployment_id = s.deployment_id
                       and y.thread_id = s.thread_id
                     limit 1
                   ) x
             order by s.deployment_id, s.thread_id, s.checkpoint_id desc
           ) h
     where t.ctid = h.row_id;
end
$function$;

comment on function agent.save_checkpoints(bigint, agent.batch_checkpoint[]) is
    'Inserts checkpoints of leased runs.';
