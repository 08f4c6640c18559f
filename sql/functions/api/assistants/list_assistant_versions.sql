-- SPDX-License-Identifier: Apache-2.0
-- POST /assistants/{assistant_id}/versions. p_request: the body; metadata (members that the version's metadata
-- contains) limits the result.
-- Returns: ok with an array of version records, [] for none, the newest first; next: the offset of the next page,
--          null after the last; assistant_not_found. body null: the records have more than p_max_bytes (null = no
--          limit); the rest was not read.
--          p_lists_keys: their numbers instead of the records, an array for agent.read_page.
-- Bound:   16 MB of records, but at least one.
--          Held by `agent.is_full_page(v_count, v_limit, v_bytes)` and
--          `p_bytes > 16777216` in sql/functions/inline/base/is_full_page.sql.
-- Locks:   none.
create or replace function agent.list_assistant_versions(
    p_deployment_id uuid,
    p_assistant_id uuid,
    p_request json,
    p_max_bytes bigint default null,
    p_lists_keys boolean default false,
    out code text,
    out body text,
    out next text
)
language plpgsql stable security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set enable_sort = off set plan_cache_mode = force_generic_plan
as $function$
declare
    v_limit    integer := coalesce((p_request ->> 'limit')::integer, 10);
    v_offset   integer := coalesce((p_request ->> 'offset')::integer, 0);
    v_metadata jsonb := nullif((p_request -> 'metadata')::jsonb, 'null');
    v_row      agent.assistant_versions;
    v_record   text;
    v_records  text[] := '{}';
    v_bytes    bigint := 0;
    v_count    integer := 0;
begin
    perform from agent.assistants a
      where a.deployment_id = p_deployment_id
        and a.assistant_id = p_assistant_id;
    if not found then
        code := 'assistant_not_found';
        return;
    end if;
    code := 'ok';
    for v_row in
        select v.*
          from agent.assistant_versions v
         where v.deployment_id = p_deployment_id
           and v.assistant_id = p_assistant_id
           and (v_metadata is null or v.metadata @> v_metadata)
         order by v.version desc
         limit v_limit + 1 offset v_offset
    loop
        if v_count < v_limit then
            if p_lists_keys then
                v_record := v_row.version;
                v_bytes := v_bytes + agent.value_bytes(v_row.config) + agent.value_bytes(v_row.context)
                    + agent.value_bytes(v_row.metadata);
            elsif v_bytes + agent.stored_bytes(v_row.config) + agent.stored_bytes(v_row.context)
                + agent.stored_bytes(v_row.metadata) > p_max_bytes then
                return;
            else
                v_record := agent.render_assistant_version(v_row);
                v_bytes := v_bytes + octet_length(v_record);
            end if;
        end if;
        if agent.is_full_page(v_count, v_limit, v_bytes) then
            next := v_offset + v_count;
            exit;
        end if;
        v_records := array_append(v_records, v_record);
        v_count := v_count + 1;
    end loop;
    body := case
        when p_lists_keys then v_records::text
        when v_bytes <= p_max_bytes is not false then '[' || array_to_string(v_records, ',') || ']'
    end;
end
$function$;

comment on function agent.list_assistant_versions(uuid, uuid, json, bigint, boolean) is
    'POST /assistants/{assistant_id}/versions.';
