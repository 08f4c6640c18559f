-- SPDX-License-Identifier: Apache-2.0
-- The stored events of a run after a cursor.
-- Returns: up to p_limit rows in order of seq; p_after -1 = from the first. An event that names a
--          checkpoint shows its values. No rows for an unknown run.
-- Locks:   none.
create or replace function agent.read_events(
    p_account_id uuid,
    p_thread_id uuid,
    p_run_id uuid,
    p_after bigint,
    p_limit integer
) returns table (seq bigint, event text, data text)
language plpgsql stable security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set enable_hashjoin = off set enable_mergejoin = off set plan_cache_mode = force_generic_plan
as $function$
declare
    v_bucket date;
begin
    select r.events_bucket into v_bucket
      from agent.runs r
     where r.run_id = p_run_id
       and r.account_id is not distinct from p_account_id
       and r.thread_id is not distinct from p_thread_id;
    if not found then
        return;
    end if;
    return query
        select e.seq, e.event, coalesce(e.data, v.content::text, 'null')
          from (
                select x.seq, x.event, x.data, x.checkpoint_id
                  from agent.run_events x
                 where x.account_id = p_account_id
                   and x.bucket = v_bucket
                   and x.run_id = p_run_id
                   and x.seq > p_after
                 order by x.account_id, x.bucket, x.run_id, x.seq
                 limit p_limit
               ) e
          left join lateral (
                select k.channels
                  from agent.checkpoints k
                 where k.account_id = p_account_id
                   and k.thread_id = p_thread_id
                   and k.checkpoint_id = e.checkpoint_id
                 limit 1
               ) c on true
         cross join lateral agent.compose_values(p_account_id, p_thread_id, c.channels) v
         order by e.seq;
end
$function$;

comment on function agent.read_events(uuid, uuid, uuid, bigint, integer) is
    'The stored events of a run after a cursor.';
