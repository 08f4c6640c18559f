-- SPDX-License-Identifier: Apache-2.0
-- The writes of a snapshot, [[task_id, idx, channel, reference, task_path, run_id], ...]: of those of one idx the
-- oldest run's, or the newest run's when idx is negative.
-- p_skip: writes to pass over.
-- Returns: body: the elements of an array, the first one whatever its length; next: the number of writes up to here,
--          null after the last one.
-- Locks:   none.
create or replace function agent.read_writes(
    p_row agent.checkpoint_snapshots,
    p_skip integer,
    p_bytes integer,
    out body text,
    out next integer
)
language plpgsql stable security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $function$
declare
    v_write text;
    v_left  integer := p_bytes;
    v_parts text[] := '{}';
begin
    for v_write in
        select translate(json_build_array(
                   w.task_id, w.idx, w.channel, agent.render_reference(w.digests, w.is_list), w.task_path,
                   w.run_id)::text,
                   E'\n\r', '  ')
          from (
                select x.*
                  from agent.find_writes(
                           p_row.deployment_id, p_row.thread_id, p_row.checkpoint_ns, p_row.checkpoint_id) x
                offset p_skip
               ) w
    loop
        if v_left <= 0 then
            next := p_skip + cardinality(v_parts);
            exit;
        end if;
        v_parts := v_parts || v_write;
        v_left := v_left - octet_length(v_write);
    end loop;
    body := array_to_string(v_parts, ',');
end
$function$;

comment on function agent.read_writes(agent.checkpoint_snapshots, integer, integer) is 'The writes of a snapshot.';
