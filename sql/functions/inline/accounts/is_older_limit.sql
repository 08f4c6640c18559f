-- SPDX-License-Identifier: Apache-2.0
-- Whether the server p_generation_id, which was started at p_begun_at, may replace a limit that is stored. A limit from
-- a time after p_now, because the database's clock went back, may be of any age: each server replaces it, and the one
-- that was started last does so last. A server corrects its own time to the earliest one that it has told: its other
-- statements may have arrived late.
-- Returns: true if it may.
-- Locks:   none.
create or replace function agent.is_older_limit(
    p_limit agent.account_limits,
    p_generation_id uuid,
    p_begun_at timestamptz,
    p_now timestamptz
) returns boolean
language sql stable parallel safe
-- No SET clause: it would keep the body from being inlined.
as $function$
    select case
        when p_limit.generation_id = p_generation_id
        then p_limit.configured_at > p_begun_at + interval '100 milliseconds'
        else p_limit.configured_at < p_begun_at or p_limit.configured_at > p_now
    end
$function$;

comment on function agent.is_older_limit(agent.account_limits, uuid, timestamptz, timestamptz) is
    'Whether a server may replace a limit that is stored.';
