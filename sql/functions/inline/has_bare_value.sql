-- SPDX-License-Identifier: Apache-2.0
-- Whether a state is one value without a name, as a graph of the functional API or one with a root channel has it.
-- Its only channel has this name; the API shows the value alone.
-- Returns: false or null for any other state.
-- Locks:   none.
create or replace function agent.has_bare_value(p_channels agent.channel_value[]) returns boolean
language sql immutable parallel safe
-- No SET clause: it would keep the body from being inlined.
as $function$
    select cardinality(p_channels) = 1 and (p_channels[1]).name = '__root__'
$function$;

comment on function agent.has_bare_value(agent.channel_value[]) is 'Whether a state is one value without a name.';
