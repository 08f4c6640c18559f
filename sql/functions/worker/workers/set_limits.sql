-- SPDX-License-Identifier: Apache-2.0
-- Stores limits of accounts, which all servers of a database have in common; the others stay. A limit is that of the
-- server that was started last of those that name it, whenever they connect. A server tells how long ago it was
-- started: the times are those of the database's clock, and a wrong clock of a host changes nothing. A limit whose time
-- is in the future, since the database's clock went back, is replaced by any server. In a database that accepts no
-- writes nothing is stored. Called before all else on a connection, it waits for other sessions no longer than 100 ms:
-- the caller tries again later. The count of what no longer has a limit ends within a minute (agent.count_accounts).
-- p_limits: an array of objects: account_id (null: each account without a limit of its own), name, value (null: none).
-- p_generation_id: the start of the server, or its restart; p_age_ms: how long ago that was.
-- Returns: a line for each limit that was another one before; a null alone when nothing can be stored.
-- Locks:   the limits (share row exclusive: readers continue); none when nothing changes.
create or replace function agent.set_limits(p_limits json, p_generation_id uuid, p_age_ms bigint)
returns table (replaced text)
language plpgsql volatile security invoker
set search_path = '' set jit = off set lock_timeout = '100ms'
as $function$
#variable_conflict use_column
declare
    c_nil      constant uuid := '00000000-0000-0000-0000-000000000000';
    v_now      timestamptz := agent.now();
    v_begun_at timestamptz := v_now - p_age_ms * interval '1 millisecond';
begin
    if current_setting('transaction_read_only')::boolean then
        return next;
        return;
    end if;
    if not exists (
        select
          from json_to_recordset(p_limits) as p (account_id uuid, name text)
          left join agent.account_limits l on l.account_id = coalesce(p.account_id, c_nil) and l.name = p.name
         where coalesce(agent.is_older_limit(l, p_generation_id, v_begun_at, v_now), true))
    then
        return;
    end if;
    -- Of two servers at once the second reports what the first one stored.
    lock table agent.account_limits in share row exclusive mode;
    return query
        with old as materialized (
            select l.* from agent.account_limits l
        ),
        stored as (
            insert into agent.account_limits as l (account_id, name, value, generation_id, configured_at)
            select coalesce(p.account_id, c_nil), p.name, p.value, p_generation_id, v_begun_at
              from json_to_recordset(p_limits) as p (account_id uuid, name text, value bigint)
             order by 1, 2
                on conflict (account_id, name) do update
               set value = excluded.value,
                   generation_id = excluded.generation_id,
                   configured_at = excluded.configured_at
             where agent.is_older_limit(l, p_generation_id, v_begun_at, v_now)
            returning l.account_id, l.name, l.value
        )
        select format('%s %s%s replaces %s', s.name, coalesce(s.value::text, 'none'),
                      ' account=' || nullif(s.account_id, c_nil), coalesce(o.value::text, 'none'))
          from stored s
          join old o on o.account_id = s.account_id and o.name = s.name
         where o.value is distinct from s.value
         order by s.account_id, s.name;
end
$function$;

comment on function agent.set_limits(json, uuid, bigint) is 'Stores limits of accounts.';
