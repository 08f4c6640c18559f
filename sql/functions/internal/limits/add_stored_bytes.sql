-- SPDX-License-Identifier: Apache-2.0
-- Adds the bytes that a piece of a copy has stored to the measure of the deployment's account, if it has one: a short
-- request would otherwise store far more than the limit before the next measure. Copies that are under way together
-- exceed the limit by a piece each. The copy notes the bytes, also without a limit: until it has ended or is swept a
-- measure passes over its rows and adds what is noted (agent.sum_copies), so that nothing counts twice;
-- agent.measure_copy gives the rows of one that has ended to the measure. p_copy: as it was before the piece; p_bytes:
-- of the tables in the order there.
-- Returns: nothing.
-- Locks:   the row of the measure: call it last. agent.measure_accounts holds it for 50 ms. The caller holds the row of
--          the copy.
create or replace function agent.add_stored_bytes(p_copy agent.thread_copies, p_bytes bigint[]) returns void
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $function$
declare
    v_stored bigint[] := array(
        select b.old + b.new
          from unnest(p_copy.stored_bytes, p_bytes) with ordinality b (old, new, number)
         order by b.number);
begin
    perform agent.change_measure(p_copy.deployment_id, agent.sum_bytes(p_bytes));
    update agent.thread_copies c
       set stored_bytes = v_stored
     where c.deployment_id = p_copy.deployment_id
       and c.thread_id = p_copy.thread_id;
    if not found then
        perform agent.measure_copy(p_copy.deployment_id, p_copy.thread_id, v_stored);
    end if;
end
$function$;

comment on function agent.add_stored_bytes(agent.thread_copies, bigint[]) is
    'Adds what a copy has stored to the measure of an account.';
