-- SPDX-License-Identifier: Apache-2.0
-- POST /runs/batch: all runs of p_requests, each on a new thread, or none. The arrays have one
-- element per request; in p_graph_ids '' stands for an assistant that was requested by its id; p_known_graph_ids
-- are the graphs that the server executes; p_ttl and p_headers as in agent.create_stateless_run.
-- Returns: ok with the array of run records in the order of the requests; assistant_not_found, graph_not_found;
--          limit_exceeded; invalid_value when the settings of the assistants, which each run copies, are more than
--          16 MB, or the metadata and tags of a run are too long.
-- Bound:   the bytes of p_requests, 2 KB a request, of which the server accepts 1,000, and 16 MB of settings.
--          Held by `#define AGENT_MANY_RUNS 1000` in mod_agent/model/schema.h and
--          `v_bytes > c_settings_bytes`.
-- Locks:   the new rows, those of new assistants first, in the order of their keys; then one row of each count of an
--          account with limits.
create or replace function agent.create_stateless_runs(
    p_deployment_id uuid,
    p_thread_ids uuid[],
    p_run_ids uuid[],
    p_assistant_ids uuid[],
    p_graph_ids text[],
    p_known_graph_ids text[],
    p_user_id text,
    p_requests json,
    p_feedback_url text default null,
    p_ttl interval default null,
    p_headers jsonb default null,
    out code text,
    out body text
)
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set plan_cache_mode = force_generic_plan
as $function$
declare
    c_settings_bytes constant integer := 16777216;
    v_bytes          bigint := 0;
    v_assistant      agent.assistants;
    v_records        text[] := '{}';
    v_has_limits     boolean := exists (select from agent.account_limits);
    v_row            record;
begin
    for v_row in
        select a.assistant_id, nullif(a.graph_id, '') as graph_id, min(a.pos) as pos,
               count(*) as runs
          from unnest(p_assistant_ids, p_graph_ids) with ordinality a (assistant_id, graph_id, pos)
         group by 1, 2
         order by 1
    loop
        v_assistant := agent.find_assistant(
            p_deployment_id, v_row.assistant_id, v_row.graph_id, p_known_graph_ids);
        if v_assistant.assistant_id is null then
            select r.code, format('/%s: %s', v_row.pos - 1, r.body)
              into code, body
              from agent.refuse_assistant(p_deployment_id, v_row.assistant_id, v_row.graph_id) r;
            return;
        end if;
        v_bytes := v_bytes + v_row.runs * agent.settings_bytes(v_assistant);
        if v_bytes > c_settings_bytes then
            code := 'invalid_value';
            body := format('/: expected runs whose assistants have at most %s bytes of settings.', c_settings_bytes);
            return;
        end if;
    end loop;

    if v_has_limits then
        body := agent.check_run_limits(
            p_deployment_id, cardinality(p_run_ids), cardinality(p_run_ids),
            (
                select count(r.request ->> 'webhook')::integer
                  from json_array_elements(p_requests) as r (request)
            ));
    end if;
    if body is not null then
        code := 'limit_exceeded';
        return;
    end if;

    -- Before the first run is created.
    for v_row in
        select json_populate_record(null::agent.run_request, r.request) as request, r.pos
          from json_array_elements(p_requests) with ordinality as r (request, pos)
    loop
        body := agent.check_run_metadata(
            agent.find_assistant(
                p_deployment_id, p_assistant_ids[v_row.pos], nullif(p_graph_ids[v_row.pos], ''), p_known_graph_ids),
            '{}', v_row.request);
        if body is not null then
            code := 'invalid_value';
            body := format('/%s%s', v_row.pos - 1, body);
            return;
        end if;
    end loop;

    for v_row in
        select r.request, r.pos
          from json_array_elements(p_requests) with ordinality as r (request, pos)
         order by r.pos
    loop
        v_assistant := agent.find_assistant(
            p_deployment_id, p_assistant_ids[v_row.pos], nullif(p_graph_ids[v_row.pos], ''),
            p_known_graph_ids);
        v_records := v_records || agent.enqueue_stateless_run(
            p_deployment_id, p_thread_ids[v_row.pos], p_run_ids[v_row.pos], v_assistant,
            coalesce(p_user_id, ''), null, null, p_feedback_url,
            json_populate_record(null::agent.run_request, v_row.request), p_ttl, p_headers)::text;
    end loop;
    if exists (select from agent.account_counts) then
        perform agent.change_count(p_deployment_id, 'threads', cardinality(p_run_ids));
    end if;
    code := 'ok';
    body := '[' || array_to_string(v_records, ',') || ']';
end
$function$;

comment on function agent.create_stateless_runs(
    uuid, uuid[], uuid[], uuid[], text[], text[], text, json, text, interval, jsonb) is
    'POST /runs/batch.';
