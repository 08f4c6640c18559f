-- SPDX-License-Identifier: Apache-2.0
-- Stores the limits of the accounts, which all servers of a database should have in common: those of the server that
-- called last hold. Counts one account anew whose count is a minute old: all of its rows are locked, so that writers
-- wait, and what they wrote before is counted.
-- p_limits: an array of objects: account_id (null: each account without a limit of its own), name, value.
-- Returns: 1 if an account was counted, else 0: call again while it is not 0.
-- Locks:   the limits that change, then the rows of a count.
create or replace function agent.set_limits(p_limits json) returns integer
language plpgsql volatile security invoker
set search_path = '' set jit = off
as $function$
declare
    c_nil   constant uuid := '00000000-0000-0000-0000-000000000000';
    v_now   timestamptz := agent.now();
    v_count agent.account_counts;
begin
    delete from agent.account_limits l
     where not exists (
            select from json_to_recordset(p_limits) as p (account_id uuid, name text)
             where coalesce(p.account_id, c_nil) = l.account_id
               and p.name = l.name);
    insert into agent.account_limits as l (account_id, name, value)
    select coalesce(p.account_id, c_nil), p.name, p.value
      from json_to_recordset(p_limits) as p (account_id uuid, name text, value bigint)
     order by 1, 2
        on conflict (account_id, name) do update set value = excluded.value
     where l.value <> excluded.value;
    delete from agent.account_counts c
     where agent.find_limit(c.account_id, c.name) is null;

    select c.* into v_count
      from agent.account_counts c
     where c.counted_at < v_now - interval '1 minute'
     order by c.counted_at
     limit 1;
    if not found then
        return 0;
    end if;
    perform from agent.account_counts c
      where c.account_id = v_count.account_id
        and c.name = v_count.name
      order by c.shard
        for no key update;
    v_count.value := agent.count_runs(v_count.account_id, v_count.name);
    update agent.account_counts c
       set value = case when c.shard = 0 then v_count.value else 0 end,
           counted_at = v_now
     where c.account_id = v_count.account_id
       and c.name = v_count.name;
    return 1;
end
$function$;

comment on function agent.set_limits(json) is 'Stores the limits of the accounts, and counts what one of them has.';
