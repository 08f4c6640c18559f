-- SPDX-License-Identifier: Apache-2.0
-- POST /store/namespaces. p_request: the body.
-- Returns: ok with the namespaces, in ascending order; too_many_items: see agent.find_namespaces.
-- Bound:   1,000 namespaces of about 1 KB. Held by `v_limit between 0 and 1000` in find_namespaces.sql.
-- Locks:   none.
create or replace function agent.list_namespaces(p_deployment_id uuid, p_request json, out code text, out body text)
language plpgsql stable security invoker
set search_path = ''
as $function$
begin
    select '{"namespaces":' || f.namespaces || '}' into body
      from agent.find_namespaces(p_deployment_id, p_request) f;
    code := case when body is null then 'too_many_items' else 'ok' end;
end
$function$;

comment on function agent.list_namespaces(uuid, json) is 'POST /store/namespaces.';
