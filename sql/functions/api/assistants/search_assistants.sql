-- SPDX-License-Identifier: Apache-2.0
-- POST /assistants/search. p_request: the body. graph_id, name (a part of the name, in any case) and metadata
-- (members that the assistant's metadata contains) limit the result. System assistants of graphs that no server
-- executes (agent.list_served_graphs; p_known_graph_ids: those that the server of the request executes) are left out:
-- they are found again when their graphs are back.
-- Returns: ok with an array of assistant records, [] for none, the newest first unless the request says
--          otherwise; next: the offset of the next page, null after the last; total: how many there are on all pages.
--          body null: the records have more than p_max_bytes (null = no limit); the rest was not read.
--          p_lists_keys: their ids instead of the records, an array for agent.read_page.
-- Bound:   16 MB of whole records, of which select takes a part, but at least one record.
--          Held by `agent.is_full_page(v_count, v_limit, v_bytes)` and
--          `p_bytes > 16777216` in sql/functions/inline/base/is_full_page.sql.
-- Locks:   none.
create or replace function agent.search_assistants(
    p_deployment_id uuid,
    p_known_graph_ids text[],
    p_request json,
    p_max_bytes bigint default null,
    p_lists_keys boolean default false,
    out code text,
    out body text,
    out next text,
    out total bigint
)
language plpgsql stable security invoker
set search_path = '' set jit = off
as $function$
declare
    v_limit    integer := coalesce((p_request ->> 'limit')::integer, 10);
    v_offset   integer := coalesce((p_request ->> 'offset')::integer, 0);
    v_sort_by  text := p_request ->> 'sort_by';
    v_is_asc   boolean := coalesce(p_request ->> 'sort_order' = 'asc', false);
    -- Read once: the condition is evaluated for each assistant.
    v_graph_id text := p_request ->> 'graph_id';
    v_name     text := lower(p_request ->> 'name');
    v_metadata jsonb := nullif((p_request -> 'metadata')::jsonb, 'null');
    v_served   text[] := agent.list_served_graphs(p_deployment_id, p_known_graph_ids);
    v_select   text[];
    v_row      agent.assistants;
    v_record   text;
    v_records  text[] := '{}';
    v_bytes    bigint := 0;
    v_count    integer := 0;
begin
    v_select := agent.read_words(p_request -> 'select');
    code := 'ok';
    for v_row in
        -- Columns, not a row as one value: that would be sorted with all that it contains.
        select a.*
          from agent.assistants a
         cross join lateral (
                select case v_sort_by
                           when 'name' then a.name
                           when 'graph_id' then a.graph_id
                           when 'assistant_id' then a.assistant_id::text
                           when 'updated_at' then agent.render_time(a.updated_at)
                           else agent.render_time(a.created_at)
                       end as value
               ) k
         where a.deployment_id = p_deployment_id
           and agent.matches_assistant(a, v_graph_id, v_name, v_metadata, v_served)
         order by case when v_is_asc then k.value end,
                  case when not v_is_asc then k.value end desc,
                  a.assistant_id
         limit v_limit + 1 offset v_offset
    loop
        if v_count < v_limit then
            if p_lists_keys then
                v_record := v_row.assistant_id;
                v_bytes := v_bytes + agent.value_bytes(v_row.config) + agent.value_bytes(v_row.context)
                    + agent.value_bytes(v_row.metadata);
            elsif v_bytes + agent.stored_bytes(v_row.config) + agent.stored_bytes(v_row.context)
                + agent.stored_bytes(v_row.metadata) > p_max_bytes then
                return;
            else
                v_record := agent.render_assistant(v_row);
                v_bytes := v_bytes + octet_length(v_record);
            end if;
        end if;
        if agent.is_full_page(v_count, v_limit, v_bytes) then
            next := v_offset + v_count;
            exit;
        end if;
        if v_select <> '{}' and not p_lists_keys then
            v_record := agent.pick_members(v_record::json, v_select);
        end if;
        v_records := array_append(v_records, v_record);
        v_count := v_count + 1;
    end loop;
    if v_bytes <= p_max_bytes is not false then
        select c.body::bigint into total from agent.count_assistants(p_deployment_id, p_known_graph_ids, p_request) c;
        body := case when p_lists_keys then v_records::text else '[' || array_to_string(v_records, ',') || ']' end;
    end if;
end
$function$;

comment on function agent.search_assistants(uuid, text[], json, bigint, boolean) is 'POST /assistants/search.';
