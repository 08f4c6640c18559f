-- SPDX-License-Identifier: Apache-2.0
-- Short names for the specs: threads, runs and checkpoints are numbers; there is one worker.
create function public.id(p_kind text, p_number integer) returns uuid language sql immutable as $$
    select format('00000000-0000-7000-8000-%s%s', p_kind, lpad(p_number::text, 11, '0'))::uuid
$$;

create function public.numbers(p_ids text) returns text language sql immutable as $$
    select string_agg(right(i, 1), ' ' order by i) from regexp_split_to_table(p_ids, ' ') i
$$;

create table public.worker (worker_id bigint);

-- Empty threads 1 and 2 and a live worker, before each permutation.
create function public.start_over() returns void language plpgsql as $$
begin
    delete from agent.run_queue;
    delete from agent.run_events;
    delete from agent.checkpoints;
    delete from agent.checkpoint_items;
    delete from agent.usage_events;
    delete from agent.webhook_outbox;
    delete from agent.runs;
    delete from agent.threads;
    delete from agent.workers;
    delete from public.worker;
    insert into public.worker select worker_id from agent.register_worker('n', 'b', 1, 1, 9, 600, '{default}', '{agent}');
    perform agent.create_thread('00000000-0000-0000-0000-000000000001', public.id('a', t), 'raise', '{}')
       from generate_series(1, 2) t;
end
$$;

create function public.new_run(p_thread integer, p_run integer, p_strategy text) returns text
language sql as $$
    select code from agent.create_run(
        '00000000-0000-0000-0000-000000000001', public.id('a', p_thread), public.id('b', p_run),
        'fe096781-5601-53d2-b2f6-0d3403f7e9ca', 'agent', '{agent}', p_strategy, null, null, null, '{}')
$$;

create function public.cancel(p_thread integer, p_run integer, p_action text) returns text
language sql as $$
    select concat_ws(' ', code, body) from agent.cancel_run(
        '00000000-0000-0000-0000-000000000001', public.id('a', p_thread), public.id('b', p_run), p_action)
$$;

-- (code, numbers of the threads and runs that ended: threads before runs).
create function public.cancel_all(p_status text, p_action text) returns text language sql as $$
    select concat_ws(' ', c.code, public.numbers(c.changed))
      from agent.cancel_runs_by_status('00000000-0000-0000-0000-000000000001', p_status, p_action,
                                       'ffffffff-ffff-ffff-ffff-ffffffffffff') c
$$;

create function public.cancel_ids(p_thread integer, p_action text, variadic p_runs integer[]) returns text language sql as $$
    select concat_ws(' ', c.code, public.numbers(c.changed))
      from agent.cancel_runs('00000000-0000-0000-0000-000000000001', public.id('a', p_thread),
                             array(select public.id('b', r) from unnest(p_runs) r), p_action) c
$$;

-- Numbers of the claimed runs.
create function public.claim(p_limit integer) returns text language sql as $$
    select coalesce(string_agg(right(c.run_id::text, 1), ' ' order by c.run_id), 'none')
      from public.worker w, agent.claim_runs(w.worker_id, '{00000000-0000-0000-0000-000000000001}', '{agent}', '{0}', '{1}', array[p_limit], '{16}', p_limit, 1000000) c
$$;

create function public.due_webhook(p_run integer) returns void language sql as $$
    insert into agent.webhook_outbox (deployment_id, run_id, thread_id, url, body, body_bytes, due_at, created_at)
    values ('00000000-0000-0000-0000-000000000001', public.id('b', p_run), public.id('a', 1), 'https://hooks.example/', '{}', 2,
            agent.now(), agent.now())
$$;

-- Numbers of the runs of the claimed webhooks.
create function public.claim_webhooks(p_limit integer) returns text language sql as $$
    select coalesce(string_agg(right(c.run_id::text, 1), ' ' order by c.run_id), 'none')
      from public.worker w, agent.claim_webhooks(w.worker_id, p_limit, 64, 1000000, 30, '{}', 0, 0) c
$$;

create function public.item(p_run integer, p_message json) returns json language sql as $$
    select (p_message::jsonb || jsonb_build_object(
               'd', '00000000-0000-0000-0000-000000000001', 'r', public.id('b', p_run), 'e', 1,
               's', case when p_message ->> 'type' = 'event' then 0 end))::json
$$;

create function public.save(variadic p_items json[]) returns text language sql as $$
    select string_agg(format('%s %s%s', right(s.run_id::text, 1), s.outcome,
                             case when s.finished then ' finished' end), ', ' order by s.run_id)
      from public.worker w, public.save_items(w.worker_id, array_to_json(p_items)) s
$$;

create function public.event(p_run integer) returns json language sql as $$
    select public.item(p_run, '{"type": "event", "event": "custom", "data": 1}')
$$;

create function public.checkpoint(p_run integer) returns json language sql as $$
    select public.item(p_run, json_build_object(
        'type', 'checkpoint', 'checkpoint_id', public.id('c', p_run), 'values', '{"messages": [1]}'::json,
        'next', '[]'::json, 'tasks', '[]'::json, 'metadata', '{}'::json))
$$;

create function public.finish(p_run integer, p_status text) returns json language sql as $$
    select public.item(p_run, json_build_object('type', 'end', 'status', p_status))
$$;

create function public.release(p_run integer) returns text language sql as $$
    select outcome
      from public.worker w, agent.release_runs(w.worker_id, json_build_array(public.item(p_run, '{}')), false, 'x', null)
$$;

create function public.mark_dead() returns integer language sql as $$
    select count(*)::integer from public.worker w, agent.mark_worker_dead(w.worker_id, false, 100)
$$;

-- The resulting rows.
create view public.outcome as
    select right(t.thread_id::text, 1) as thread, t.status as thread_status, right(r.run_id::text, 1) as run,
           r.status, q.state, q.cancel, q.epoch,
           (select count(*) from agent.run_events e where e.run_id = r.run_id) as events,
           right(t.head_checkpoint_id::text, 1) as head
      from agent.threads t
      left join agent.runs r using (deployment_id, thread_id)
      left join agent.run_queue q using (deployment_id, run_id)
     order by t.thread_id, r.thread_seq;
