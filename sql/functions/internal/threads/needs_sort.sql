-- SPDX-License-Identifier: Apache-2.0
-- Whether a page of a search among more than 10,000 threads needs a sort of more than 10,000. For the order of the last
-- change an index by the hour finds the threads of the page, and the threads of an hour are sorted. These are too many
-- if the hour in which the page ends extends beyond the 10,000th thread.
-- p_end: offset and limit together.
-- Returns: true or false.
-- Locks:   none.
create or replace function agent.needs_sort(
    p_deployment_id uuid,
    p_request json,
    p_sort_by text,
    p_is_asc boolean,
    p_end integer
) returns boolean
language plpgsql stable security invoker
-- Planned with the arguments, as agent.search_threads.
set search_path = '' set jit = off set enable_seqscan = off set enable_sort = off
set plan_cache_mode = force_custom_plan
as $function$
declare
    c_threads constant integer := agent.most_examined_threads();
    v_filter  record;
begin
    select f.* into v_filter
      from agent.read_thread_filter(p_request) f;
    if p_sort_by <> 'updated_at' or p_end > c_threads
        or coalesce(v_filter.metadata::text, v_filter.status, v_filter.excluded::text) is not null
    then
        return true;
    end if;
    return coalesce((
        select min(h.updated_hour) = max(h.updated_hour)
          from (
                select t.updated_hour
                  from agent.find_threads(p_deployment_id, v_filter.ids, null, null, null) t
                 order by case when p_is_asc then t.updated_hour end,
                          case when not p_is_asc then t.updated_hour end desc
                offset p_end
                 limit c_threads + 1 - p_end
               ) h), false);
end
$function$;

comment on function agent.needs_sort(uuid, json, text, boolean, integer) is
    'Whether a page of a search needs a sort of more than 10,000 threads.';
