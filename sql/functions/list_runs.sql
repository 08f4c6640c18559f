-- SPDX-License-Identifier: Apache-2.0
-- GET /threads/{thread_id}/runs.
-- Returns: ok with an array of run records, newest first, [] for none; thread_not_found.
--          p_status null = any; p_select null = whole records, else only these fields.
-- Locks:   none.
create or replace function agent.list_runs(
    p_account_id uuid,
    p_thread_id uuid,
    p_limit integer,
    p_offset integer,
    p_status text,
    p_select text[],
    out code text,
    out body text
)
language plpgsql stable security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set enable_sort = off set plan_cache_mode = force_generic_plan
as $function$
begin
    perform from agent.threads t
      where t.account_id = p_account_id
        and t.thread_id = p_thread_id;
    if not found then
        code := 'thread_not_found';
        return;
    end if;

    code := 'ok';
    select coalesce(json_agg(x.record order by x.thread_seq desc), '[]')
      into body
      from (
            select r.thread_seq, agent.render_run(r) as record
              from agent.runs r
             where r.account_id = p_account_id
               and r.thread_id = p_thread_id
               and (p_status is null or r.status = p_status)
             order by r.thread_seq desc
             limit p_limit offset p_offset
           ) x;
    if p_select is not null then
        select coalesce(json_agg(agent.pick_members(e.record, p_select) order by e.pos), '[]')
          into body
          from json_array_elements(body::json) with ordinality as e (record, pos);
    end if;
end
$function$;

comment on function agent.list_runs(uuid, uuid, integer, integer, text, text[]) is
    'GET /threads/{thread_id}/runs.';
