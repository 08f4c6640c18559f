-- SPDX-License-Identifier: Apache-2.0
-- PATCH /threads/{thread_id}: members of metadata replace those of the thread, which keeps the others; a ttl replaces
-- that of the thread, and its time begins; without minutes (null, or an object without them) the thread has none, and
-- is kept until a client deletes it. A temporary thread has none.
-- Returns: ok with the thread record and its cursor, as agent.get_thread; thread_not_found; invalid_value when the
--          metadata would have more than 64 members of clients;
--          limit_exceeded, not for a ttl alone, by which a full account gets rid of data.
-- Locks:   the thread, then its expiry.
create or replace function agent.update_thread(
    p_deployment_id uuid,
    p_thread_id uuid,
    p_request json,
    p_max_bytes bigint default null,
    out code text,
    out body text,
    out cursor text
)
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set plan_cache_mode = force_generic_plan
as $function$
declare
    v_ttl   constant interval := agent.read_ttl(p_request -> 'ttl', null);
    v_ends  constant boolean := p_request -> 'ttl' is not null and v_ttl is null;
    v_now   constant timestamptz := agent.now();
    -- A JSON null counts as absent.
    v_given jsonb := coalesce(nullif((p_request -> 'metadata')::jsonb, 'null'), '{}');
begin
    if v_given <> '{}' and exists (select from agent.account_limits) then
        body := agent.check_stored_bytes(p_deployment_id);
        if body is not null then
            code := 'limit_exceeded';
            return;
        end if;
    end if;
    update agent.threads t
       set metadata = t.metadata || v_given,
           ttl = case when not t.temporary and not v_ends then coalesce(v_ttl, t.ttl) end,
           updated_at = v_now
     where t.deployment_id = p_deployment_id
       and t.thread_id = p_thread_id
       and not t.is_deleted
       and (
            select count(*)
              from jsonb_object_keys((t.metadata || v_given) - array['graph_id', 'assistant_id', 'thread_id'])) <= 64;
    if found then
        -- The end of an unfinished run sets it again.
        insert into agent.thread_expiries as e (deployment_id, thread_id, expires_at)
        select t.deployment_id, t.thread_id, v_now + t.ttl
          from agent.threads t
         where t.deployment_id = p_deployment_id
           and t.thread_id = p_thread_id
           and t.ttl is not null
           and v_ttl is not null
            on conflict (deployment_id, thread_id) do update
           set expires_at = excluded.expires_at;
        delete from agent.thread_expiries e
         using agent.threads t
         where v_ends
           and e.deployment_id = p_deployment_id
           and e.thread_id = p_thread_id
           and t.deployment_id = e.deployment_id
           and t.thread_id = e.thread_id
           and not t.temporary;
    elsif exists (
        select from agent.threads t
         where t.deployment_id = p_deployment_id
           and t.thread_id = p_thread_id
           and not t.is_deleted)
    then
        code := 'invalid_value';
        body := '/metadata: expected at most 64 keys, those of the thread included.';
        return;
    end if;
    select g.code, g.body, g.cursor into code, body, cursor
      from agent.get_thread(p_deployment_id, p_thread_id, p_max_bytes) g;
end
$function$;

comment on function agent.update_thread(uuid, uuid, json, bigint) is 'PATCH /threads/{thread_id}.';
