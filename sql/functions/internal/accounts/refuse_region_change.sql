-- SPDX-License-Identifier: Apache-2.0
-- Trigger function: a database stays in its region, also for its owner.
-- Returns: never; raises MA002.
-- Locks:   none.
create or replace function agent.refuse_region_change() returns trigger
language plpgsql security invoker set search_path = ''
as $function$
begin
    raise exception using
        errcode = 'MA002',
        message = 'the region of a database never changes',
        hint = 'Install into a new database, with the psql variable region.';
end
$function$;

comment on function agent.refuse_region_change() is 'Refuses a change of the region of the database.';

create or replace trigger region_fixed
    before update or delete or truncate on agent.region
    for each statement
    execute function agent.refuse_region_change();

comment on trigger region_fixed on agent.region is 'The region of a database never changes.';
