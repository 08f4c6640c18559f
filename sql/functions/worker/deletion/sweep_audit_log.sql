-- SPDX-License-Identifier: Apache-2.0
-- Deletes rows of the audit log that are older than p_retention, the first ones first; never those of the last 30 days.
-- Security definer, so that the role of a server deletes no other row: it uses clock_timestamp(), since a caller can
-- set agent.now.
-- Returns: number of rows: call again while it is not 0.
-- Locks:   the rows; those that are locked are passed over.
create or replace function agent.sweep_audit_log(p_retention interval) returns integer
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $function$
declare
    v_before constant timestamptz := clock_timestamp() - greatest(p_retention, interval '30 days');
    v_count  integer;
begin
    delete from agent.audit_log l
     where l.ctid = any (array(
            select x.ctid
              from agent.audit_log x
             where x.at < v_before
             order by x.at
             limit 1000
               for update skip locked));
    get diagnostics v_count = row_count;
    return v_count;
end
$function$;

comment on function agent.sweep_audit_log(interval) is 'Deletes old rows of the audit log.';
