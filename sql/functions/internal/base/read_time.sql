-- SPDX-License-Identifier: Apache-2.0
-- Reads a time of a request: a day, or a day and a time of ISO 8601, of UTC where it names no zone. PostgreSQL alone
-- would also take `yesterday`, and 01/02/2026 as one day or another.
-- Returns: the time; null: any other text, or a day that no calendar has.
-- Locks:   none.
create or replace function agent.read_time(p_text text) returns timestamptz
language plpgsql stable security invoker
set search_path = '' set timezone = 'UTC'
as $function$
begin
    return case
        when p_text ~ ('^[0-9]{4}-[0-9]{2}-[0-9]{2}'
            || '([T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?(Z|[+-][0-9]{2}(:?[0-9]{2})?)?)?$')
        then p_text::timestamptz
    end;
exception
    when data_exception then
        return null;
end
$function$;

comment on function agent.read_time(text) is 'Reads a time of a request.';
