-- SPDX-License-Identifier: Apache-2.0
-- POST /threads/count. p_request: the body, with the conditions of agent.search_threads.
-- Returns: ok with the number. body null: more than 10,000 threads must be examined, and p_max_bytes is not null.
-- Locks:   none.
create or replace function agent.count_threads(
    p_deployment_id uuid,
    p_request json,
    p_max_bytes bigint default null,
    out code text,
    out body text
)
language plpgsql stable security invoker
-- Planned with the arguments: the conditions that are null vanish.
set search_path = '' set jit = off set enable_seqscan = off set enable_sort = off
set plan_cache_mode = force_custom_plan
as $function$
declare
    c_threads constant integer := agent.most_examined_threads();
    v_filter  record;
begin
    code := 'ok';
    select f.* into v_filter
      from agent.read_thread_filter(p_request) f;
    if p_max_bytes is not null then
        perform from agent.find_threads(p_deployment_id, v_filter.ids, v_filter.among, null, null)
         limit 1 offset c_threads;
        if found then
            return;
        end if;
    end if;
    select count(*) into body
      from agent.find_threads(
                p_deployment_id, v_filter.ids, v_filter.metadata, v_filter.status, v_filter.excluded);
end
$function$;

comment on function agent.count_threads(uuid, json, bigint) is 'POST /threads/count.';
