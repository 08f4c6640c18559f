-- SPDX-License-Identifier: Apache-2.0
-- The most segments that the values of a checkpoint or a snapshot have together (agent.channel_value). Each checkpoint
-- stores 12 bytes for one, and a reader finds one in 10 us. A chat of 300 turns whose every answer is generated twice
-- has 12, a state of 32 such lists 293 (agent.fork_list).
-- Returns: a number of segments.
-- Locks:   none.
create or replace function agent.most_segments() returns integer
language sql immutable parallel safe
-- No SET clause: it would keep the body from being inlined.
as $function$
    select 2048
$function$;

comment on function agent.most_segments() is 'The most segments of a checkpoint or a snapshot.';
