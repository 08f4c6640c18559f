-- SPDX-License-Identifier: Apache-2.0
-- Inserts blobs of one part, and counts the uses of these and others. A blob that is stored already is kept. Threads
-- with a blob without uses are recorded in agent.blob_sweeps for agent.sweep_blobs.
-- p_blobs: the blobs. p_uses: differences, of which a digest may have several.
-- Returns: nothing. Raises an error of class 22 for a use of a blob that the thread does not have, or not all of it.
-- Locks:   the caller holds the threads.
create or replace function agent.save_blobs(
    p_blobs agent.checkpoint_blobs[],
    p_uses agent.blob_use[]
) returns void
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set enable_hashjoin = off set enable_mergejoin = off set plan_cache_mode = force_generic_plan
as $function$
declare
    v_missing bigint;
begin
    with known as materialized (
        select x.deployment_id, x.thread_id, x.digest, sum(x.uses)::integer as uses,
               (array_agg(x.blob) filter (where x.is_blob))[1] as blob, bool_or(x.is_blob) as is_blob
          from (
                select b.deployment_id, b.thread_id, b.digest, 0, true, b
                  from unnest(p_blobs) b
                union all
                select u.deployment_id, u.thread_id, u.digest, u.uses, false, null
                  from unnest(p_uses) u
               ) x (deployment_id, thread_id, digest, uses, is_blob, blob)
         group by x.deployment_id, x.thread_id, x.digest
    ),
    stored as (
        insert into agent.checkpoint_blobs as t (
            deployment_id, thread_id, digest, part, parts, stored_parts, uses, type, is_text, content)
        select k.deployment_id, k.thread_id, k.digest, 0, 1, 1, greatest(k.uses, 0), (k.blob).type, (k.blob).is_text,
               (k.blob).content
          from known k
         where k.is_blob
         order by k.deployment_id, k.thread_id, k.digest
            on conflict (deployment_id, thread_id, digest, part) do update
           set parts = 1,
               stored_parts = 1,
               uses = excluded.uses,
               type = excluded.type,
               is_text = excluded.is_text,
               content = excluded.content
         where t.stored_parts < t.parts
        returning t.deployment_id, t.thread_id, t.digest, t.uses
    ),
    -- Not a join: its plan would depend on the number of rows.
    other as materialized (
        select x.deployment_id, x.thread_id, x.digest, sum(x.uses) as uses
          from (
                select k.deployment_id, k.thread_id, k.digest, k.uses, false
                  from known k
                 where k.uses <> 0
                union all
                select s.deployment_id, s.thread_id, s.digest, 0, true
                  from stored s
               ) x (deployment_id, thread_id, digest, uses, is_stored)
         group by x.deployment_id, x.thread_id, x.digest
        having not bool_or(x.is_stored)
         order by x.deployment_id, x.thread_id, x.digest
    ),
    changed as (
        update agent.checkpoint_blobs b
           set uses = b.uses + o.uses
          from (
                select i.row_id, o.uses
                  from other o
                 cross join lateral (
                        select y.ctid as row_id
                          from agent.checkpoint_blobs y
                         where y.deployment_id = o.deployment_id
                           and y.thread_id = o.thread_id
                           and y.digest = o.digest
                           and y.part = 0
                           and y.stored_parts = y.parts
                         limit 1
                       ) i
               ) o
         where b.ctid = o.row_id
        returning b.deployment_id, b.thread_id, b.digest, b.uses
    ),
    noted as (
        insert into agent.blob_sweeps (deployment_id, thread_id, due_at)
        select distinct s.deployment_id, s.thread_id, agent.now() + agent.sweep_delay()
          from (
                select *
                  from stored
                union all
                select *
                  from changed
               ) s
         where s.uses = 0
            on conflict do nothing
    )
    select (select count(*) from other) - (select count(*) from changed) into v_missing;
    if v_missing > 0 then
        raise exception using errcode = 'invalid_parameter_value',
            message = 'a reference names a value that the thread does not have';
    end if;
end
$function$;

comment on function agent.save_blobs(agent.checkpoint_blobs[], agent.blob_use[]) is
    'Inserts blobs and counts their uses.';
