-- SPDX-License-Identifier: Apache-2.0
-- Whether a server may replace a limit that is stored: if it was started (p_begun_at) after the server that stored the
-- limit. A limit whose time is after p_now was stored before the database's clock went back. Nothing is known about its
-- age, so any server replaces it; the next statements of all servers then restore the order. A server that finds its
-- own limit (p_generation_id) with a later start than it says now corrects it: an earlier statement was delayed.
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
