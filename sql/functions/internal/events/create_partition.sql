-- SPDX-License-Identifier: Apache-2.0
-- Creates the partition of a day. It is created as a table and then attached, because "create table ...
-- partition of" would block all readers and writers; rows of that day in the default partition are moved.
-- Returns: nothing.
-- Locks:   SHARE UPDATE EXCLUSIVE on agent.run_events, ACCESS EXCLUSIVE on its default partition.
create or replace function agent.create_partition(p_name text, p_day date) returns void
language plpgsql volatile
-- The search path of agent.maintain_partitions, which calls this as the owner.
security invoker set search_path = pg_catalog, pg_temp
as $function$
begin
    execute format('create table agent.%I (like agent.run_events including all)', p_name);
    execute format(
        'with moved as (delete from agent.run_events_default where bucket = %2$L returning *) '
        'insert into agent.%1$I select * from moved', p_name, p_day);
    execute format(
        'alter table agent.run_events attach partition agent.%I for values from (%L) to (%L)',
        p_name, p_day, p_day + 1);
    execute format('comment on table agent.%I is %L', p_name, 'Events of runs that began on ' || p_day);
end
$function$;

comment on function agent.create_partition(text, date) is
    'Creates the partition of a day of agent.run_events.';
