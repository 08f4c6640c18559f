-- SPDX-License-Identifier: Apache-2.0
-- The result of a task as what its node wrote: of a state that is one value without a name the value alone.
-- Returns: the value; a JSON null when the node wrote nothing; null for null.
-- Locks:   none.
create or replace function agent.render_result(p_result json) returns json
language sql immutable parallel safe security invoker
set search_path = ''
as $function$
    select case
        when json_typeof(p_result) = 'null' then null
        when p_result::text ~ '^\{\s*\}$' then 'null'
        when p_result::text ~ '^\{\s*"__root__"\s*:' and (
            select count(*)
              from json_object_keys(p_result)) = 1
        then p_result -> '__root__'
        else p_result
    end
$function$;

comment on function agent.render_result(json) is 'The result of a task as what its node wrote.';
