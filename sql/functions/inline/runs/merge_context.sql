-- SPDX-License-Identifier: Apache-2.0
-- The request's context over the assistant's. Rewritten only when both have members; otherwise the client's
-- text is kept verbatim.
-- Returns: the merged object.
-- Locks:   none.
create or replace function agent.merge_context(p_base json, p_over json) returns json
language sql immutable parallel safe
-- No SET clause: it would keep the body from being inlined.
as $function$
    select case
               when p_over is null then p_base
               when p_base is null or p_base::text = '{}' then p_over
               else (p_base::jsonb || p_over::jsonb)::json
           end
$function$;

comment on function agent.merge_context(json, json) is 'One JSON object over another.';
