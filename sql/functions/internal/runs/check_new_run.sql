-- SPDX-License-Identifier: Apache-2.0
-- Whether a run may be created: as agent.check_run_metadata, and within the limits of the account.
-- p_thread_metadata: of its thread; null: the run creates it. counts_thread: the caller counts that thread once it is
-- inserted; where nothing is counted it saves the call.
-- Returns: code null if it may; else invalid_value or limit_exceeded, with their bodies.
-- Locks:   the rows of new counts.
create or replace function agent.check_new_run(
    p_assistant agent.assistants,
    p_thread_metadata jsonb,
    p_request agent.run_request,
    out code text,
    out body text,
    out counts_thread boolean
)
language plpgsql volatile security invoker
-- No SET clause: it is called for each run, by functions that have them.
as $function$
begin
    body := agent.check_run_metadata(p_assistant, p_thread_metadata, p_request);
    if body is not null then
        code := 'invalid_value';
        return;
    end if;
    if exists (select from agent.account_limits) then
        body := agent.check_run_limits(
            p_assistant.deployment_id, 1, (p_thread_metadata is null)::integer,
            case when p_request.webhook is null then 0 else 1 end);
        if body is not null then
            code := 'limit_exceeded';
        end if;
    end if;
    counts_thread := p_thread_metadata is null and exists (select from agent.account_counts);
end
$function$;

comment on function agent.check_new_run(agent.assistants, jsonb, agent.run_request) is
    'Whether a run may be created.';
