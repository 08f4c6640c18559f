-- SPDX-License-Identifier: Apache-2.0
-- The channels of a snapshot from an element on, as references of the runner protocol.
-- p_channel, p_position: the channel, from 0, and the element of it.
-- Returns: body: the members of an object, the first one whatever its length; next: CHANNEL.POSITION of what follows,
--          null for nothing; bytes_left: what remains of p_bytes.
-- Locks:   none.
create or replace function agent.read_references(
    p_row agent.checkpoint_snapshots,
    p_channel integer,
    p_position integer,
    p_bytes integer,
    out body text,
    out next text,
    out bytes_left integer
)
language plpgsql stable security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set enable_hashjoin = off set enable_mergejoin = off set plan_cache_mode = force_generic_plan
as $function$
declare
    v_channel  agent.channel_value;
    v_position integer := p_position;
    v_part     record;
    v_parts    text[] := '{}';
begin
    bytes_left := p_bytes;
    for v_index in p_channel + 1 .. cardinality(p_row.channels)
    loop
        v_channel := p_row.channels[v_index];
        bytes_left := bytes_left - octet_length(v_channel.name) - 64;
        if v_parts <> '{}' and bytes_left <= 0 then
            next := (v_index - 1) || '.' || v_position;
            exit;
        end if;
        v_part := agent.read_reference(
            p_row.deployment_id, p_row.thread_id, v_channel, v_position, bytes_left, v_parts = '{}');
        bytes_left := bytes_left - v_part.bytes;
        v_parts := v_parts || (to_json(v_channel.name)::text || ':' || v_part.body);
        if v_part.until < v_channel.length then
            next := (v_index - 1) || '.' || v_part.until;
            exit;
        end if;
        v_position := 0;
    end loop;
    body := array_to_string(v_parts, ',');
end
$function$;

comment on function agent.read_references(agent.checkpoint_snapshots, integer, integer, integer) is
    'The channels of a snapshot as references.';
