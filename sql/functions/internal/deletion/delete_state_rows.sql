-- SPDX-License-Identifier: Apache-2.0
-- Deletes rows of one of the tables of agent.find_state_rows.
-- p_rows: their row ids (ctid).
-- Returns: nothing.
-- Locks:   the caller holds the thread.
create or replace function agent.delete_state_rows(p_name text, p_rows tid[]) returns void
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $function$
begin
    case p_name
        when 'checkpoints' then
            delete from agent.checkpoints c where c.ctid = any (p_rows);
        when 'checkpoint_snapshots' then
            delete from agent.checkpoint_snapshots s where s.ctid = any (p_rows);
        when 'checkpoint_writes' then
            delete from agent.checkpoint_writes w where w.ctid = any (p_rows);
        when 'checkpoint_blobs' then
            delete from agent.checkpoint_blobs b where b.ctid = any (p_rows);
        when 'copied_runs' then
            delete from agent.copied_runs r where r.ctid = any (p_rows);
        when 'checkpoint_items' then
            delete from agent.checkpoint_items i where i.ctid = any (p_rows);
    end case;
end
$function$;

comment on function agent.delete_state_rows(text, tid[]) is 'Deletes rows of the state of a thread.';
