-- SPDX-License-Identifier: Apache-2.0
-- Daily maintenance of agent.run_events: drops days older than p_retention, at least one day, except those to
-- which an unfinished run writes, and creates partitions for today and the next 7 days. A lock that is not
-- available at once leaves the rest to the next call.
-- Returns: number of partitions created and dropped.
-- Locks:   SHARE UPDATE EXCLUSIVE on the table, which excludes a concurrent call; for each old day ACCESS
--          EXCLUSIVE on it and the table; for each new day ACCESS EXCLUSIVE on the default partition.
create or replace function agent.maintain_partitions(p_retention interval) returns integer
language plpgsql volatile
-- Not security invoker: only the owner may create and drop tables, and the role of a server is not the
-- owner. pg_temp is named, and last, because a search path without it begins with it: code that the caller
-- attached there to a table or type of the same name would run as the owner.
security definer set search_path = pg_catalog, pg_temp set lock_timeout = '1s'
as $function$
declare
    v_today   date := (agent.now() at time zone 'UTC')::date;
    v_day     date;
    v_name    text;
    v_changes integer := 0;
begin
    if p_retention is null or p_retention < interval '1 day' then
        raise exception 'agent: events are kept for at least one day, not %', p_retention
            using errcode = 'invalid_parameter_value';
    end if;
    -- Not an advisory lock, which any role that connects could hold.
    lock table only agent.run_events in share update exclusive mode nowait;

    -- Drops come first, since they lock the table: a session that waits for the default partition holds a
    -- lock on the table, and the two would deadlock.
    for v_name, v_day in
        select c.relname, to_date(right(c.relname, 8), 'YYYYMMDD')
          from pg_catalog.pg_inherits i
          join pg_catalog.pg_class c on c.oid = i.inhrelid
         where i.inhparent = 'agent.run_events'::regclass
           and c.relname ~ '^run_events_[0-9]{8}$'
         order by 2
    loop
        exit when v_day >= ((agent.now() - p_retention) at time zone 'UTC')::date;
        -- A run that was never leased has no events, and will write to the day of its first lease.
        continue when exists (
            select from agent.run_queue q where q.events_bucket = v_day and q.epoch > 0);
        execute format('drop table agent.%I', v_name);
        v_changes := v_changes + 1;
    end loop;

    for v_day in
        select d::date from generate_series(v_today, v_today + 7, interval '1 day') d
    loop
        v_name := 'run_events_' || to_char(v_day, 'YYYYMMDD');
        continue when to_regclass('agent.' || v_name) is not null;
        perform agent.create_partition(v_name, v_day);
        v_changes := v_changes + 1;
    end loop;
    return v_changes;
exception
    when lock_not_available then
        return 0;
end
$function$;

comment on function agent.maintain_partitions(interval) is
    'Creates partitions of agent.run_events ahead and drops old ones.';
