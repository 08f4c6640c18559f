-- SPDX-License-Identifier: Apache-2.0
-- Stores limits of accounts, which all servers of a database have in common; the others stay. A limit is that of the
-- server that was configured last of those that name it, whenever they connect. A server with a wrong clock counts as
-- configured now. Does nothing in a database that accepts no writes.
-- p_limits: an array of objects: account_id (null: each account without a limit of its own), name, value (null: none).
-- p_configured_at_ms: when the server read its configuration, in ms since 1970.
-- Returns: a line for each limit that was another one before.
-- Locks:   the limits, then the counts that no longer have one; none when nothing changes.
create or replace function agent.set_limits(p_limits json, p_configured_at_ms bigint)
returns table (replaced text)
language plpgsql volatile security invoker
set search_path = '' set jit = off
as $function$
#variable_conflict use_column
declare
    c_nil           constant uuid := '00000000-0000-0000-0000-000000000000';
    v_configured_at timestamptz := least(to_timestamp(p_configured_at_ms / 1000.0), agent.now());
    v_is_removal    boolean;
begin
    if current_setting('transaction_read_only')::boolean
       or not exists (
            select
              from json_to_recordset(p_limits) as p (account_id uuid, name text)
              left join agent.account_limits l on l.account_id = coalesce(p.account_id, c_nil) and l.name = p.name
             where coalesce(l.configured_at < v_configured_at, true))
    then
        return;
    end if;
    -- Of two servers at once the second reports what the first one stored.
    perform from agent.account_limits l
      order by l.account_id, l.name
        for no key update;
    v_is_removal := exists (
        select
          from json_to_recordset(p_limits) as p (account_id uuid, name text, value bigint)
          join agent.account_limits l on l.account_id = coalesce(p.account_id, c_nil) and l.name = p.name
         where p.value is null
           and l.value is not null
           and l.configured_at < v_configured_at);
    return query
        with old as materialized (
            select l.* from agent.account_limits l
        ),
        stored as (
            insert into agent.account_limits as l (account_id, name, value, configured_at)
            select coalesce(p.account_id, c_nil), p.name, p.value, v_configured_at
              from json_to_recordset(p_limits) as p (account_id uuid, name text, value bigint)
             order by 1, 2
                on conflict (account_id, name) do update
               set value = excluded.value, configured_at = excluded.configured_at
             where l.configured_at < excluded.configured_at
            returning l.account_id, l.name, l.value
        )
        select format('%s %s%s replaces %s', s.name, coalesce(s.value::text, 'none'),
                      ' account=' || nullif(s.account_id, c_nil), coalesce(o.value::text, 'none'))
          from stored s
          join old o on o.account_id = s.account_id and o.name = s.name
         where o.value is distinct from s.value
         order by s.account_id, s.name;
    -- It reads all counts.
    if v_is_removal then
        perform agent.end_counts();
    end if;
end
$function$;

comment on function agent.set_limits(json, bigint) is 'Stores limits of accounts.';
