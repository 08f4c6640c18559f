-- SPDX-License-Identifier: Apache-2.0
-- The deletions of accounts, also those that have ended, in the order of their ids. p_after: the last id of the page
-- before; null for the first page.
-- Returns: ok with an array of records, [] after the last one.
-- Bound:   1,000 records. Held by `limit least(p_limit, 1000)`.
-- Locks:   none.
create or replace function agent.list_deletions(p_after uuid, p_limit integer, out code text, out body text)
language plpgsql stable security invoker
set search_path = ''
as $function$
begin
    select 'ok', coalesce(json_agg(agent.render_deletion(d) order by d.deletion_id), '[]') into code, body
      from (
            select x.*
              from agent.account_deletions x
             where x.deletion_id > p_after is not false
             order by x.deletion_id
             limit least(p_limit, 1000)
           ) d;
end
$function$;

comment on function agent.list_deletions(uuid, integer) is 'The deletions of accounts.';
