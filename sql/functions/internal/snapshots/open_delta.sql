-- SPDX-License-Identifier: Apache-2.0
-- Where a part of agent.read_delta begins. p_names: its channels; p_cursor: its cursor, null for the first part, which
-- begins at the parent of p_checkpoint_id.
-- Returns: checkpoint_id: the snapshot, null for none; open: the channels whose seed was not read yet, name -> position
--          in p_names, null for an invalid cursor, also one of a snapshot that was deleted since; next: the position at
--          the snapshot, wCOUNT or sPOSITION. Raises an error of class 22 for names that are null, equal or more
--          than 64.
-- Locks:   none.
create or replace function agent.open_delta(
    p_deployment_id uuid,
    p_thread_id uuid,
    p_ns text,
    p_checkpoint_id uuid,
    p_names text[],
    p_cursor text,
    out checkpoint_id uuid,
    out open jsonb,
    out next text
)
language plpgsql stable security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $function$
declare
    c_channels constant integer := 64;
begin
    if cardinality(p_names) not between 1 and c_channels or array_position(p_names, null) is not null
        or (select count(*) > count(distinct n.name) from unnest(p_names) n (name))
    then
        raise exception using errcode = 'invalid_parameter_value', message = 'a delta has wrong arguments';
    elsif p_cursor is null then
        next := 'w0';
        select jsonb_object_agg(n.name, n.pos) into open
          from unnest(p_names) with ordinality n (name, pos);
        select x.parent_checkpoint_id into checkpoint_id
          from agent.checkpoint_snapshots x
         where x.deployment_id = p_deployment_id
           and x.thread_id = p_thread_id
           and x.checkpoint_ns = p_ns
           and x.checkpoint_id = p_checkpoint_id
           and (x.run_id in (select s.run_id from agent.find_swept_runs(p_deployment_id, p_thread_id) s)) is not true;
    elsif p_cursor ~ ('^[0-9a-f-]{36}\.[01]{' || cardinality(p_names) || '}\.[ws][0-9]{1,9}$') then
        next := split_part(p_cursor, '.', 3);
        -- The walk passes over a snapshot of a deleted run of which no part was read.
        select x.checkpoint_id, (
                   select coalesce(jsonb_object_agg(n.name, n.pos), '{}')
                     from unnest(p_names) with ordinality n (name, pos)
                    where substr(p_cursor, 37 + n.pos::integer, 1) = '1')
          into checkpoint_id, open
          from agent.checkpoint_snapshots x
         where x.deployment_id = p_deployment_id
           and x.thread_id = p_thread_id
           and x.checkpoint_ns = p_ns
           and x.checkpoint_id = left(p_cursor, 36)::uuid
           and (next <> 'w0'
                and x.run_id in (
                    select s.run_id from agent.find_swept_runs(p_deployment_id, p_thread_id) s)) is not true;
    end if;
end
$function$;

comment on function agent.open_delta(uuid, uuid, text, uuid, text[], text) is
    'Where a part of a delta begins.';
