-- SPDX-License-Identifier: Apache-2.0
-- GET /.well-known/agent-addresses: the addresses of the service in its region. None is fixed yet.
-- Returns: ok with an object: region, ingress, egress.
-- Locks:   none.
create or replace function agent.get_addresses(out code text, out body text)
language plpgsql stable security invoker
set search_path = ''
as $function$
begin
    select 'ok', json_build_object('region', r.region, 'ingress', '[]'::json, 'egress', '[]'::json)
      into code, body
      from agent.region r;
end
$function$;

comment on function agent.get_addresses() is 'The addresses of the service in its region.';
