-- SPDX-License-Identifier: Apache-2.0
-- Deletes API keys that were revoked, or found to have expired, more than 90 days ago, the first ones first. The audit
-- log still says what they did. Security definer, so that the role of a server deletes no other key: it uses
-- clock_timestamp(), since a caller can set agent.now.
-- Returns: number of keys: call again while it is not 0.
-- Locks:   the keys; those that are locked are passed over.
create or replace function agent.delete_revoked_keys() returns integer
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $function$
declare
    v_before constant timestamptz := clock_timestamp() - interval '90 days';
    v_count  integer;
begin
    delete from agent.api_keys k
     where k.ctid = any (array(
            select x.ctid
              from agent.api_keys x
             where x.revoked_at < v_before
             order by x.revoked_at
             limit 1000
               for update skip locked));
    get diagnostics v_count = row_count;
    return v_count;
end
$function$;

comment on function agent.delete_revoked_keys() is 'Deletes API keys that were revoked 90 days ago.';
