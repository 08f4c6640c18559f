-- SPDX-License-Identifier: Apache-2.0
-- The channels that the library stores as writes and whose value a snapshot may lack: those that its metadata count as
-- changed since their last value, and that the branch has written at least once.
-- p_checkpoint: the library's object; p_metadata: the library's metadata.
-- Returns: their names; none for null.
-- Locks:   none.
create or replace function agent.find_delta_channels(p_checkpoint json, p_metadata jsonb) returns text[]
language sql immutable security invoker
set search_path = ''
as $function$
    select array(
        select k.name
          from jsonb_object_keys(
                   case
                       when jsonb_typeof(p_metadata -> 'counters_since_delta_snapshot') = 'object'
                       then p_metadata -> 'counters_since_delta_snapshot'
                       else '{}'
                   end) k (name)
         where (p_checkpoint -> 'channel_versions')::jsonb ? k.name)
$function$;

comment on function agent.find_delta_channels(json, jsonb) is 'The channels of a snapshot that are stored as writes.';
