-- SPDX-License-Identifier: Apache-2.0
-- Whether a run may be created: as agent.check_run_metadata, and within the limits of the account.
-- p_thread_metadata: of its thread; null: the run creates it, and it is counted.
-- Returns: code null if it may; else invalid_value or limit_exceeded, with their bodies.
-- Locks:   the rows of new counts, and one row of the count of threads.
create or replace function agent.check_new_run(
    p_assistant agent.assistants,
    p_thread_metadata jsonb,
    p_request agent.run_request,
    out code text,
    out body text
)
language plpgsql volatile security invoker
set search_path = '' set jit = off
as $function$
begin
    body := agent.check_run_metadata(p_assistant, p_thread_metadata, p_request);
    if body is not null then
        code := 'invalid_value';
        return;
    end if;
    if exists (select from agent.account_limits) then
        body := agent.check_new_runs(
            p_assistant.deployment_id, 1,
            case when p_thread_metadata is null then 1 else 0 end,
            case when p_request.webhook is null then 0 else 1 end);
        if body is not null then
            code := 'limit_exceeded';
        end if;
    end if;
end
$function$;

comment on function agent.check_new_run(agent.assistants, jsonb, agent.run_request) is
    'Whether a run may be created.';
