-- SPDX-License-Identifier: Apache-2.0
-- The rows of agent.runs of the deployment $1 after a key, for agent.compose_export and agent.compose_measure: thread
-- by thread (h), each with its runs (t) in their order, since the runs of a thread have an index, those of a deployment
-- none. A thread without further runs is a row, whose t is null. To be ordered by h.thread_id alone: by the number
-- too, PostgreSQL would read and sort the rest of the thread for each part. p_after: thread_id and thread_seq as
-- texts; null: from the first run on.
-- Returns: SQL from the tables to the condition.
-- Locks:   none.
create or replace function agent.compose_runs_source(p_after text[]) returns text
language plpgsql immutable security invoker
set search_path = ''
as $function$
begin
    return format(
        $$agent.threads h left join lateral (
              select r.* from agent.runs r
               where r.thread_id = h.thread_id
                 and r.deployment_id = h.deployment_id
                 and r.thread_seq > %s
               order by r.thread_seq) t on true
           where h.deployment_id = $1%s$$,
        case when p_after is null then '-1'
             else format('case when h.thread_id = %L then %L::bigint else -1 end', p_after[1], p_after[2]) end,
        case when p_after is not null then format(' and h.thread_id >= %L', p_after[1]) end);
end
$function$;

comment on function agent.compose_runs_source(text[]) is 'The runs of a deployment after a key.';
