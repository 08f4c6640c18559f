-- SPDX-License-Identifier: Apache-2.0
-- A record of a list, for agent.read_page, which has the kinds and their keys.
-- p_select: the members to show; null or {} for all. p_checkpoint_ns: of states; null for ''.
-- Returns: the text of the record, null when it was deleted; bytes: its length, or the length with all members.
--          cursor: where agent.read_values begins to read values of more than p_max_bytes; the text then ends where
--          their members begin.
-- Locks:   none.
create or replace function agent.compose_record(
    p_deployment_id uuid,
    p_kind text,
    p_parent_id uuid,
    p_key text,
    p_select text[],
    p_checkpoint_ns text,
    p_max_bytes integer,
    out body text,
    out bytes bigint,
    out cursor text
)
language plpgsql stable security invoker
set search_path = '' set jit = off set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $function$
begin
    case p_kind
        when 'assistants' then
            select agent.render_assistant(a) into body
              from agent.assistants a
             where a.deployment_id = p_deployment_id
               and a.assistant_id = p_key::uuid;
        when 'versions' then
            select agent.render_assistant_version(v) into body
              from agent.assistant_versions v
             where v.deployment_id = p_deployment_id
               and v.assistant_id = p_parent_id
               and v.version = p_key::integer;
        when 'threads' then
            select c.body, c.cursor into body, cursor
              from agent.threads t
             cross join lateral agent.compose_thread(t, p_select, p_max_bytes) c
             where t.deployment_id = p_deployment_id
               and t.thread_id = p_key::uuid
               and not t.is_deleted;
        when 'states' then
            select s.body, s.cursor into body, cursor
              from agent.find_checkpoint(
                       p_deployment_id, p_parent_id, coalesce(p_checkpoint_ns, ''), p_key::uuid) k
             cross join lateral agent.render_checkpoint_metadata(
                        p_deployment_id, p_parent_id, k.checkpoint_id, k.run_id, k.metadata) o
             cross join lateral agent.render_state(k, o.metadata, p_select, p_max_bytes) s;
        when 'items' then
            select r.body into body
              from agent.read_item(
                       p_deployment_id, array(select json_array_elements_text(p_key::json -> 0)), p_key::json ->> 1,
                       true) r;
        else
            select agent.render_run(r) into body
              from agent.find_run(p_deployment_id, p_parent_id, p_key::uuid) r;
    end case;
    bytes := octet_length(body);
    if cursor is not null then
        body := split_part(body, E'\x01', 1);
    elsif p_select <> '{}' and p_kind not in ('threads', 'states') then
        body := agent.pick_members(body::json, p_select);
    end if;
end
$function$;

comment on function agent.compose_record(uuid, text, uuid, text, text[], text, integer) is
    'A record of a list, for agent.read_page.';
