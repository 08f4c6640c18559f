-- SPDX-License-Identifier: Apache-2.0
-- Invitations, also those that are no longer valid, in the order of their ids, which is that of their creation.
-- p_after: the last id of the page before; null for the first page.
-- Returns: ok with an array of records, [] after the last one.
-- Bound:   1,000 records. Held by `limit least(p_limit, 1000)`.
-- Locks:   none.
create or replace function agent.list_invitations(p_after uuid, p_limit integer, out code text, out body text)
language plpgsql stable security invoker
set search_path = ''
as $function$
declare
    v_region text := (select r.region from agent.region r);
begin
    select 'ok', coalesce(json_agg(agent.render_invitation(i, v_region) order by i.invitation_id), '[]')
      into code, body
      from (
            select x.*
              from agent.invitations x
             where x.invitation_id > p_after is not false
             order by x.invitation_id
             limit least(p_limit, 1000)
           ) i;
end
$function$;

comment on function agent.list_invitations(uuid, integer) is 'Invitations in the order of their creation.';
