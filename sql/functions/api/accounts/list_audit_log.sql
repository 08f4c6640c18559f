-- SPDX-License-Identifier: Apache-2.0
-- GET /v1/account/audit: what was done with an account, its keys, deployments and limits, the last action first.
-- p_before: the last id of the page before; null for the first page.
-- Returns: ok with an array of records; next: p_before of the next page, null after one that is not full.
-- Bound:   1,000 records. Held by `limit least(p_limit, 1000)`.
-- Locks:   none.
create or replace function agent.list_audit_log(
    p_account_id uuid,
    p_before bigint,
    p_limit integer,
    out code text,
    out body text,
    out next text
)
language plpgsql stable security invoker
set search_path = '' set jit = off set enable_seqscan = off set plan_cache_mode = force_generic_plan
as $function$
begin
    select 'ok', coalesce(json_agg(agent.render_audit(l) order by l.audit_id desc), '[]'),
           case when count(*) = least(p_limit, 1000) then min(l.audit_id) end
      into code, body, next
      from (
            select x.*
              from agent.audit_log x
             where x.account_id = p_account_id
               and x.audit_id < p_before is not false
             order by x.audit_id desc
             limit least(p_limit, 1000)
           ) l;
end
$function$;

comment on function agent.list_audit_log(uuid, bigint, integer) is 'What was done with an account.';
