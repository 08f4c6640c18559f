-- SPDX-License-Identifier: Apache-2.0
-- The checkpoints of the graphs above a subgraph during which its checkpoint was saved, as the library has noted them
-- in metadata.parents.
-- Returns: an object: namespace -> checkpoint_id, of at most 64 graphs; {} for the root graph.
-- Locks:   none.
create or replace function agent.find_parents(p_checkpoint_ns text, p_metadata json) returns jsonb
language sql immutable parallel safe security invoker
set search_path = ''
as $function$
    select coalesce(jsonb_object_agg(m.key, m.value), '{}')
      from (
            select p.key, p.value
              from json_each_text(case
                       when json_typeof(p_metadata -> 'parents') = 'object' then p_metadata -> 'parents'
                       else '{}'
                   end) p
             where p_checkpoint_ns <> ''
               and (p.key = '' or starts_with(p_checkpoint_ns, p.key || '|'))
               -- A runner chooses the text.
               and p.value ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'
             limit 64
           ) m
$function$;

comment on function agent.find_parents(text, json) is 'The checkpoints of the graphs above a subgraph.';
