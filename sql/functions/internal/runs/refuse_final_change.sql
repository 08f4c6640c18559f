-- SPDX-License-Identifier: Apache-2.0
-- Trigger function: a final status never changes.
-- Returns: never; raises MA001.
-- Locks:   none.
create or replace function agent.refuse_final_change() returns trigger
language plpgsql security invoker set search_path = ''
as $function$
begin
    raise exception using
        errcode = 'MA001',
        message = format('run %s is final (%s) and cannot become %s', old.run_id, old.status, new.status);
end
$function$;

comment on function agent.refuse_final_change() is 'Refuses a change of a final status.';

create or replace trigger runs_final_status
    before update on agent.runs
    for each row
    when (old.finished_at is not null
          and (new.status is distinct from old.status
               or new.finished_at is distinct from old.finished_at))
    execute function agent.refuse_final_change();

comment on trigger runs_final_status on agent.runs is 'A final status never changes.';
