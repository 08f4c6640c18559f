-- SPDX-License-Identifier: Apache-2.0
-- POST /threads/search. p_request: the body. ids, metadata (members that the thread's metadata contains), status and
-- exclude_metadata limit the result; threads of stateless runs are not found.
-- Returns: ok with an array of thread records, [] for none, the last changed first unless the request says otherwise;
--          next: the offset of the next page, null after the last; total: how many there are on all pages, null when
--          more than 10,000 threads were examined. body null: the records have more than p_max_bytes (null = no limit),
--          or more than 10,000 threads must be examined or sorted; the rest was not read.
--          p_lists_keys: their ids instead of the records, an array for agent.read_page.
-- Bound:   16 MB of whole records, of which select takes a part, but at least one record.
--          Held by `agent.is_full_page(v_count, v_limit, v_bytes)` and
--          `p_bytes > 16777216` in sql/functions/inline/base/is_full_page.sql.
-- Locks:   none.
create or replace function agent.search_threads(
    p_deployment_id uuid,
    p_request json,
    p_max_bytes bigint default null,
    p_lists_keys boolean default false,
    out code text,
    out body text,
    out next text,
    out total bigint
)
language plpgsql stable security invoker
-- Planned with the arguments: the conditions that are null vanish, and the order may be that of an index.
set search_path = '' set jit = off set enable_seqscan = off set enable_sort = off
set plan_cache_mode = force_custom_plan
as $function$
declare
    c_threads    constant integer := agent.most_examined_threads();
    v_limit      integer := coalesce((p_request ->> 'limit')::integer, 10);
    v_offset     integer := coalesce((p_request ->> 'offset')::integer, 0);
    v_sort_by    text := coalesce(p_request ->> 'sort_by', 'updated_at');
    v_is_asc     boolean := coalesce(p_request ->> 'sort_order' = 'asc', false);
    v_select     text[] := agent.read_words(p_request -> 'select');
    v_has_values boolean := coalesce(v_select = '{}' or 'values' = any (v_select), true);
    v_filter     record;
    v_among      integer;
    v_row        agent.threads;
    v_record     text;
    v_records    text[] := '{}';
    v_length     bigint;
    v_bytes      bigint := 0;
    v_count      integer := 0;
begin
    code := 'ok';
    select f.* into v_filter
      from agent.read_thread_filter(p_request) f;
    select count(*) into v_among
      from (
            select from agent.find_threads(p_deployment_id, v_filter.ids, v_filter.among, null, null)
             limit c_threads + 1
           ) t;
    if v_among > c_threads and p_max_bytes is not null
        and agent.needs_sort(p_deployment_id, p_request, v_sort_by, v_is_asc, v_offset + v_limit)
    then
        return;
    end if;
    for v_row in
        -- Columns, not a row as one value: that would be sorted with all that it contains.
        select t.*
          from agent.find_threads(
                    p_deployment_id, v_filter.ids, v_filter.metadata, v_filter.status, v_filter.excluded) t
         cross join lateral (
                select case v_sort_by
                           when 'created_at' then t.created_at
                           when 'state_updated_at' then t.state_updated_at
                           when 'updated_at' then t.updated_at
                       end as time,
                       case v_sort_by
                           when 'thread_id' then t.thread_id::text
                           when 'status' then t.status
                       end as word
               ) k
         order by case when v_sort_by = 'updated_at' and v_is_asc then t.updated_hour end,
                  case when v_sort_by = 'updated_at' and not v_is_asc then t.updated_hour end desc,
                  case when v_is_asc then k.time end,
                  case when not v_is_asc then k.time end desc nulls last,
                  case when v_is_asc then k.word end,
                  case when not v_is_asc then k.word end desc,
                  t.thread_id
         limit v_limit + 1 offset v_offset
    loop
        if agent.is_full_page(v_count, v_limit, v_bytes) then
            next := v_offset + v_count;
            exit;
        end if;
        v_length := coalesce((
            select case when p_lists_keys then agent.value_bytes(k.tasks) else agent.stored_bytes(k.tasks) end
                   + case when v_has_values then k.state_bytes else 0 end
              from agent.checkpoints k
             where k.deployment_id = p_deployment_id
               and k.thread_id = v_row.thread_id
               and k.checkpoint_ns = ''
               and k.checkpoint_id = v_row.head_checkpoint_id), 0);
        if p_lists_keys then
            v_record := v_row.thread_id;
            v_bytes := v_bytes + v_length + agent.value_bytes(v_row.metadata) + agent.value_bytes(v_row.config);
        elsif v_bytes + v_length + agent.stored_bytes(v_row.metadata) + agent.stored_bytes(v_row.config)
            > p_max_bytes
        then
            return;
        else
            select c.body, c.bytes into v_record, v_length
              from agent.compose_thread(v_row, v_select, null) c;
            v_bytes := v_bytes + v_length;
        end if;
        v_records := array_append(v_records, v_record);
        v_count := v_count + 1;
    end loop;
    if v_bytes <= p_max_bytes is not false then
        total := case when v_among <= c_threads then (
            select count(*)
              from agent.find_threads(
                        p_deployment_id, v_filter.ids, v_filter.metadata, v_filter.status, v_filter.excluded)) end;
        body := case when p_lists_keys then v_records::text else '[' || array_to_string(v_records, ',') || ']' end;
    end if;
end
$function$;

comment on function agent.search_threads(uuid, json, bigint, boolean) is 'POST /threads/search.';
